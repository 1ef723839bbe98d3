// Command peer drives franz-go against a broker: it makes a topic, sends records with the default idempotent
// producer in every codec, reads them back by partition and by groups, and prints one line of JSON per step.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const topic = "franz-go"
const perCodec = 100

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	broker := os.Args[1]
	if len(os.Args) > 2 {
		read, err := asked(os.Args[2], broker)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(read)
		return
	}
	for _, step := range []struct {
		name string
		run  func(context.Context, string) (any, error)
	}{{"admin", administer}, {"produce", produce}, {"consume", consume}, {"delete", remove},
		{"eager groups", groups("eager", kgo.RangeBalancer())},
		{"cooperative groups", groups("cooperative", kgo.CooperativeStickyBalancer())},
		{"consumer groups", groups("consumer", kgo.StickyBalancer(), kgo.ServerSideBalancer())}} {
		result, err := step.run(ctx, broker)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", step.name, err)
			os.Exit(1)
		}
		line, _ := json.Marshal(map[string]any{"step": step.name, "result": result})
		fmt.Println(string(line))
	}
}

// asked does one thing alone: how it is to be done stands in standard input. It returns how many records were read.
func asked(what, broker string) (int, error) {
	switch what {
	case "login":
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		return logIn(broker, line)
	case "tls":
		return echoOverTLS(broker, os.Stdin)
	}
	return 0, fmt.Errorf("there is nothing called %s to do", what)
}

func newAdmin(broker string) (*kadm.Client, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(client), nil
}

func administer(ctx context.Context, broker string) (any, error) {
	admin, err := newAdmin(broker)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	bytes := "1048576"
	if _, err := admin.CreateTopic(ctx, 2, 1, map[string]*string{"max.message.bytes": &bytes}, topic); err != nil {
		return nil, err
	}
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	config, err := configs.On(topic, nil)
	if err != nil {
		return nil, err
	}
	for _, entry := range config.Configs {
		if entry.Key == "max.message.bytes" {
			return entry.MaybeValue(), config.Err
		}
	}
	return nil, fmt.Errorf("max.message.bytes is not among the topic's configs")
}

func produce(ctx context.Context, broker string) (any, error) {
	acknowledged := 0
	for name, codec := range codecs {
		client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ProducerBatchCompression(codec),
			kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			return nil, err
		}
		records := make([]*kgo.Record, perCodec)
		for number := range records {
			records[number] = &kgo.Record{Topic: topic, Partition: int32(number % 2), Key: []byte(name),
				Value: fmt.Appendf(nil, "%s-%d", name, number)}
		}
		results := client.ProduceSync(ctx, records...)
		client.Close()
		if err := results.FirstErr(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		acknowledged += len(results)
	}
	return acknowledged, nil
}

func consume(ctx context.Context, broker string) (any, error) {
	start := map[int32]kgo.Offset{0: kgo.NewOffset().AtStart(), 1: kgo.NewOffset().AtStart()}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	seen := map[string]bool{}
	for len(seen) < perCodec*len(codecs) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) { seen[string(record.Value)] = true })
	}
	return len(seen), nil
}

func remove(ctx context.Context, broker string) (any, error) {
	admin, err := newAdmin(broker)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if _, err := admin.DeleteTopic(ctx, topic); err != nil {
		return nil, err
	}
	topics, err := admin.ListTopics(ctx)
	return topics.Has(topic), err
}
