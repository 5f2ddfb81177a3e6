# What the applications share: where the server is, checks that are counted, and the moment at which the leader is killed.

HOST = "127.0.0.1"
PORT = Integer(ENV.fetch("APPLICATION_PORT"))
URL = "redis://#{HOST}:#{PORT}/0"
# Everything that waits for something gives up after this time.
PATIENCE_SECONDS = Float(ENV.fetch("APPLICATION_PATIENCE", "90"))

$checks = 0

# Counts a check; ends the application if it does not hold.
def check(holds, text)
  unless holds
    puts "FAILED: #{text}"
    $stdout.flush
    exit! 1
  end
  $checks += 1
end

def equal(found, wanted, text)
  check(found == wanted, "#{text}: found #{found.inspect[0, 300]}, wanted #{wanted.inspect[0, 300]}")
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

def wait_until(text)
  deadline = now + PATIENCE_SECONDS
  until yield
    check(now < deadline, "#{text} within #{PATIENCE_SECONDS} s")
    sleep 0.05
  end
end

# Tells the runner that now is the time to kill the leader.
def the_middle
  puts "MIDDLE"
  $stdout.flush
end

def done
  puts "#{$checks} checks passed"
  $stdout.flush
end
