# Sidekiq: two processes carry out jobs, some of them scheduled or in bulk, some of which fail.

require "sidekiq/api"
require_relative "sidekiq_tasks"

JOBS = 60
BULK = 20

Sidekiq.redis { |connection| connection.del("sidekiq-done", "sidekiq-flaky") }
command = ["sidekiq", "-r", File.join(__dir__, "sidekiq_tasks.rb"), "-q", "orders", "-c", "4", "-t", "5"]
workers = Array.new(2) { Process.spawn(*command, in: File::NULL, out: File::NULL, err: File::NULL) }
begin
  JOBS.times do |number|
    Record.perform_async(number)
    the_middle if number == JOBS / 3
    sleep 0.02
  end
  Sidekiq::Client.push_bulk("class" => Record, "args" => (JOBS...JOBS + BULK).map { |number| [number] })
  Record.perform_in(2, JOBS + BULK)
  FailOnce.perform_async
  broken = Fail.perform_async

  length = -> { Sidekiq.redis { |connection| connection.llen("sidekiq-done") } }
  wait_until("all jobs are executed") { length.call >= JOBS + BULK + 1 }
  wait_until("a job that failed once is executed again") do
    Sidekiq.redis { |connection| connection.get("sidekiq-flaky") }.to_i == 2
  end
  wait_until("a job that fails is among the dead") { Sidekiq::DeadSet.new.find_job(broken) }
  wait_until("nothing is left to do") { Sidekiq::Queue.new("orders").size.zero? && Sidekiq::RetrySet.new.size.zero? }
  numbers = Sidekiq.redis { |connection| connection.lrange("sidekiq-done", 0, -1) }.map(&:to_i).sort
  equal(numbers, (0..JOBS + BULK).to_a, "each job was executed once")
  wait_until("the processes have told how much they did") { Sidekiq::Stats.new.processed >= JOBS + BULK + 4 }
  equal(Sidekiq::Stats.new.failed, 2, "failures are counted")
  equal(Sidekiq::ProcessSet.new.map { |process| process["queues"] }, [["orders"], ["orders"]], "both processes are known")
ensure
  workers.each { |worker| Process.kill("TERM", worker) }
  workers.each do |worker|
    deadline = now + 20
    sleep 0.05 until Process.wait(worker, Process::WNOHANG) || now > deadline
  rescue Errno::ECHILD
    nil
  end
end
done
