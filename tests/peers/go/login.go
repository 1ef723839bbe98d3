package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func mechanism(name, user, secret string) (sasl.Mechanism, error) {
	switch name {
	case "PLAIN":
		return plain.Auth{User: user, Pass: secret}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: secret}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: secret}.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		return oauth.Auth{Token: secret}.AsMechanism(), nil
	}
	return nil, fmt.Errorf("there is no mechanism %s", name)
}

// logIn writes records for longer than a login holds, and reads them back. What it is given stands in one line.
func logIn(broker, line string) (int, error) {
	given := strings.SplitN(strings.TrimSpace(line), " ", 4)
	if len(given) != 4 {
		return 0, fmt.Errorf("wanted: topic, mechanism, user, secret")
	}
	topic := given[0]
	chosen, err := mechanism(given[1], given[2], given[3])
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.SASL(chosen), kgo.AllowAutoTopicCreation(),
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.UnknownTopicRetries(100),
		kgo.RecordRetries(3))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return 0, err
	}
	const count = 30
	for number := 0; number < count; number++ {
		record := &kgo.Record{Topic: topic, Value: []byte(fmt.Sprint(number))}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return 0, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	read := 0
	for read < count {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return read, err
		}
		read += fetches.NumRecords()
	}
	return read, nil
}
