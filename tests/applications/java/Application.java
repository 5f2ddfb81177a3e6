import java.util.List;
import java.util.Map;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Transaction;

/** Jedis: pipelines, transactions with WATCH, scripts, waiting pops, publish/subscribe. */
public final class Application {
    private static final int PORT = Integer.parseInt(System.getenv("APPLICATION_PORT"));
    private static int checks = 0;

    private static void equal(Object found, Object wanted, String text) {
        if (!wanted.equals(found)) {
            System.out.println("FAILED: " + text + ": found " + found + ", wanted " + wanted);
            System.exit(1);
        }
        checks++;
    }

    private static Jedis connect() {
        Jedis jedis = new Jedis("127.0.0.1", PORT, 60_000);
        jedis.select(6);
        return jedis;
    }

    public static void main(String[] arguments) throws Exception {
        Jedis jedis = connect();
        jedis.flushDB();
        for (int turn = 0; turn < 60; turn++) {
            if (turn == 20) {
                System.out.println("MIDDLE");
            }
            var pipeline = jedis.pipelined();
            var count = pipeline.incr("n");
            pipeline.hset("h", Map.of("f" + turn, "" + turn));
            pipeline.sync();
            equal(count.get(), turn + 1L, "the count of pipelines");
            Thread.sleep(10);
        }
        equal(jedis.hlen("h"), 60L, "fields");

        Thread[] workers = new Thread[4];
        for (int worker = 0; worker < workers.length; worker++) {
            workers[worker] = new Thread(() -> {
                Jedis mine = connect();
                for (int done = 0; done < 25; ) {
                    mine.watch("watched");
                    String old = mine.get("watched");
                    Transaction transaction = mine.multi();
                    transaction.set("watched", "" + (old == null ? 1 : Integer.parseInt(old) + 1));
                    if (transaction.exec() != null) {
                        done++;
                    }
                }
            });
            workers[worker].start();
        }
        for (Thread worker : workers) {
            worker.join();
        }
        equal(jedis.get("watched"), "100", "what was added in transactions");

        equal(jedis.eval("return redis.call('INCRBY', KEYS[1], ARGV[1]) * 2", 1, "scripted", "21"), 42L, "a script");

        new Thread(() -> {
            try {
                Thread.sleep(100);
            } catch (InterruptedException interrupted) {
                return;
            }
            connect().rpush("queue", "job");
        }).start();
        equal(jedis.blpop(30, "queue"), List.of("queue", "job"), "a pop that waited");

        var heard = new java.util.concurrent.LinkedBlockingQueue<String>();
        var listener = new JedisPubSub() {
            @Override
            public void onMessage(String channel, String message) {
                heard.add(message);
            }
        };
        Thread listening = new Thread(() -> connect().subscribe(listener, "news"));
        listening.setDaemon(true);
        listening.start();
        while (jedis.publish("news", "hello") == 0) {
            Thread.sleep(50);
        }
        equal(heard.poll(30, java.util.concurrent.TimeUnit.SECONDS), "hello", "a message");
        System.out.println(checks + " checks passed");
        System.exit(0);
    }
}
