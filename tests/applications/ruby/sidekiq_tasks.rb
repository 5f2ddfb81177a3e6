# What the processes of Sidekiq execute.

require "sidekiq"
require_relative "common"

Sidekiq.configure_server { |config| config.redis = { url: URL } }
Sidekiq.configure_client { |config| config.redis = { url: URL } }

class Record
  include Sidekiq::Worker
  sidekiq_options queue: "orders", retry: 3

  def perform(number)
    Sidekiq.redis { |connection| connection.rpush("sidekiq-done", number) }
  end
end

class FailOnce
  include Sidekiq::Worker
  sidekiq_options queue: "orders", retry: 3
  sidekiq_retry_in { 1 }

  def perform
    raise "the first time" if Sidekiq.redis { |connection| connection.incr("sidekiq-flaky") } == 1
  end
end

class Fail
  include Sidekiq::Worker
  sidekiq_options queue: "orders", retry: 0

  def perform
    raise "every time"
  end
end
