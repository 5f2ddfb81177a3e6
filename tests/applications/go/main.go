// go-redis: pipelines, transactions with WATCH, scripts, waiting pops, publish/subscribe, streams.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var checks int

func check(holds bool, text string, values ...any) {
	if !holds {
		fmt.Printf("FAILED: "+text+"\n", values...)
		os.Exit(1)
	}
	checks++
}

func equal(found, wanted any, text string) {
	check(reflect.DeepEqual(found, wanted), "%s: found %v, wanted %v", text, found, wanted)
}

func must[T any](value T, err error) T {
	check(err == nil, "unexpected error: %v", err)
	return value
}

func main() {
	ctx := context.Background()
	// Retries would hide a doubled update.
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:" + os.Getenv("APPLICATION_PORT"), MaxRetries: -1, ReadTimeout: 60 * time.Second,
	})
	must(client.FlushDB(ctx).Result())

	for turn := 0; turn < 60; turn++ {
		if turn == 20 {
			fmt.Println("MIDDLE")
		}
		pipe := client.Pipeline()
		count := pipe.Incr(ctx, "n")
		pipe.HSet(ctx, "h", fmt.Sprint(turn), turn)
		pipe.ZAdd(ctx, "z", redis.Z{Score: float64(turn), Member: turn})
		must(pipe.Exec(ctx))
		equal(count.Val(), int64(turn+1), "the count of pipelines")
		time.Sleep(10 * time.Millisecond)
	}
	equal(must(client.HLen(ctx, "h").Result()), int64(60), "fields")
	equal(must(client.ZRange(ctx, "z", 0, 2).Result()), []string{"0", "1", "2"}, "a sorted set")

	var all sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for done := 0; done < 25; {
				err := client.Watch(ctx, func(tx *redis.Tx) error {
					value, err := tx.Get(ctx, "watched").Int()
					if err != nil && err != redis.Nil {
						return err
					}
					_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
						return pipe.Set(ctx, "watched", value+1, 0).Err()
					})
					return err
				}, "watched")
				if err == nil {
					done++
				} else {
					check(errors.Is(err, redis.TxFailedErr), "unexpected error: %v", err)
				}
			}
		}()
	}
	all.Wait()
	equal(must(client.Get(ctx, "watched").Result()), "100", "what was added in transactions")

	script := redis.NewScript(`return redis.call('INCRBY', KEYS[1], ARGV[1]) * 2`)
	equal(must(script.Run(ctx, client, []string{"scripted"}, 21).Int()), 42, "a script")

	go func() {
		time.Sleep(100 * time.Millisecond)
		client.RPush(ctx, "queue", "job")
	}()
	equal(must(client.BLPop(ctx, 30*time.Second, "queue").Result()), []string{"queue", "job"}, "a pop that waited")

	subscriber := client.Subscribe(ctx, "news")
	must(subscriber.Receive(ctx))
	for must(client.Publish(ctx, "news", "hello").Result()) == 0 {
		time.Sleep(50 * time.Millisecond)
	}
	equal(must(subscriber.ReceiveMessage(ctx)).Payload, "hello", "a message")

	id := must(client.XAdd(ctx, &redis.XAddArgs{Stream: "events", Values: []string{"kind", "created"}}).Result())
	check(client.XGroupCreate(ctx, "events", "readers", "0").Err() == nil, "a group")
	read := &redis.XReadGroupArgs{Group: "readers", Consumer: "one", Streams: []string{"events", ">"}, Block: time.Second}
	equal(must(client.XReadGroup(ctx, read).Result())[0].Messages[0].ID, id, "a stream read by a group")
	equal(must(client.XAck(ctx, "events", "readers", id).Result()), int64(1), "an acknowledgement")
	fmt.Printf("%d checks passed\n", checks)
}
