// For each case of a JSON file: writes a record and reads it in a group; prints the case's name and "ok" or the error.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type one struct {
	Name, Address, Topic, Ca, Certificate, Key, Mechanism, Username, Password, Token string
}

func (each one) tls() (*tls.Config, error) {
	authority, err := os.ReadFile(each.Ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if each.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(each.Certificate, each.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func (each one) sasl() sasl.Mechanism {
	login := scram.Auth{User: each.Username, Pass: each.Password}
	switch each.Mechanism {
	case "SCRAM-SHA-256":
		return login.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return login.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: each.Token}.AsMechanism()
	}
	return nil
}

func (each one) roundTrip(ctx context.Context) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(each.Address), kgo.AllowAutoTopicCreation(), kgo.RecordRetries(3),
		kgo.ConsumerGroup(each.Topic), kgo.ConsumeTopics(each.Topic), kgo.UnknownTopicRetries(10),
	}
	if each.Ca != "" {
		config, err := each.tls()
		if err != nil {
			return err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if mechanism := each.sasl(); mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return err
	}
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: each.Topic, Value: []byte("value")}).FirstErr(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		if fetches.NumRecords() == 0 {
			continue
		}
		if value := string(fetches.Records()[0].Value); value != "value" {
			return fmt.Errorf("another value: %s", value)
		}
		return client.CommitUncommittedOffsets(ctx)
	}
	return errors.New("no record")
}

func main() {
	content, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var cases []one
	if err := json.Unmarshal(content, &cases); err != nil {
		panic(err)
	}
	for _, each := range cases {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		result := "ok"
		if err := each.roundTrip(ctx); err != nil {
			result = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		cancel()
		fmt.Println(each.Name, result)
	}
}
