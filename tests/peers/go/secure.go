package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// terms are what a client is given: whom to trust, what to show, and how to log in.
type terms struct {
	Topic, CA, Certificate, Key, Mechanism, User, Secret string
}

// echoOverTLS writes records and reads them back.
func echoOverTLS(broker string, input io.Reader) (int, error) {
	var given terms
	if err := json.NewDecoder(input).Decode(&given); err != nil {
		return 0, err
	}
	config, err := given.tlsConfig()
	if err != nil {
		return 0, err
	}
	options := []kgo.Opt{kgo.SeedBrokers(broker), kgo.DialTLSConfig(config), kgo.AllowAutoTopicCreation(),
		kgo.ConsumeTopics(given.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.UnknownTopicRetries(100), kgo.RequestRetries(2), kgo.RecordRetries(3)}
	if given.Mechanism != "" {
		chosen, err := mechanism(given.Mechanism, given.User, given.Secret)
		if err != nil {
			return 0, err
		}
		options = append(options, kgo.SASL(chosen))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(options...)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return 0, err
	}
	const count = 10
	value := make([]byte, 100_000)
	for number := 0; number < count; number++ {
		record := &kgo.Record{Topic: given.Topic, Key: []byte(fmt.Sprint(number)), Value: value}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return 0, err
		}
	}
	read := 0
	for read < count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return read, err
		}
		read += fetches.NumRecords()
	}
	return read, nil
}

func (given terms) tlsConfig() (*tls.Config, error) {
	pem, err := os.ReadFile(given.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("there is no certificate in %s", given.CA)
	}
	if given.Certificate != "" {
		own, err := tls.LoadX509KeyPair(given.Certificate, given.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}
