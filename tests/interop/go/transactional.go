// Transactional producers by franz-go (kgo) or sarama, the first argument. They do what each line of the input says, and
// print "ok", "fenced" or "failed REASON":
//
//	open NAME BOOTSTRAP ID TIMEOUT_MS, begin NAME, send NAME TOPIC VALUE, offset NAME GROUP TOPIC OFFSET, commit NAME,
//	abort NAME, close NAME
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type producer interface {
	begin() error
	send(topic, value string) error
	offset(group, topic string, offset int64) error
	end(commit bool) error
	close() error
}

func main() {
	open := map[string]func(string, string, time.Duration) (producer, error){"franz-go": openKgo, "sarama": openSarama}[os.Args[1]]
	producers := map[string]producer{}
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		line := strings.Split(input.Text(), " ")
		var err error
		if line[0] == "open" {
			timeout, _ := strconv.Atoi(line[4])
			producers[line[1]], err = open(line[2], line[3], time.Duration(timeout)*time.Millisecond)
		} else {
			err = run(producers[line[1]], line)
		}
		fmt.Println(answer(err))
	}
}

func run(on producer, line []string) error {
	switch line[0] {
	case "begin":
		return on.begin()
	case "send":
		return on.send(line[2], line[3])
	case "offset":
		offset, _ := strconv.ParseInt(line[4], 10, 64)
		return on.offset(line[2], line[3], offset)
	case "commit":
		return on.end(true)
	case "abort":
		return on.end(false)
	}
	return on.close()
}

func answer(err error) string {
	if err == nil {
		return "ok"
	}
	for _, fenced := range []error{
		kerr.InvalidProducerEpoch, kerr.ProducerFenced, sarama.ErrInvalidProducerEpoch, sarama.ErrProducerFenced,
	} {
		if errors.Is(err, fenced) {
			return "fenced"
		}
	}
	return "failed " + err.Error()
}

type kgoProducer struct {
	client *kgo.Client
	id     string
}

func openKgo(bootstrap, id string, timeout time.Duration) (producer, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.TransactionalID(id),
		kgo.TransactionTimeout(timeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return nil, err
	}
	_, _, err = client.ProducerID(context.Background())
	return &kgoProducer{client, id}, err
}

func (on *kgoProducer) begin() error { return on.client.BeginTransaction() }

func (on *kgoProducer) send(topic, value string) error {
	record := &kgo.Record{Topic: topic, Partition: 0, Value: []byte(value)}
	return on.client.ProduceSync(context.Background(), record).FirstErr()
}

// As kgo's GroupTransactSession does, for a group without members.
func (on *kgoProducer) offset(group, topic string, offset int64) error {
	id, epoch, err := on.client.ProducerID(context.Background())
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = on.id, id, epoch, group
	added, err := add.RequestWith(context.Background(), on.client)
	if err != nil || added.ErrorCode != 0 {
		return errors.Join(err, kerr.ErrorForCode(added.ErrorCode))
	}
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = offset
	named := kmsg.NewTxnOffsetCommitRequestTopic()
	named.Topic, named.Partitions = topic, append(named.Partitions, partition)
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch = on.id, group, id, epoch
	commit.Generation = -1
	commit.Topics = append(commit.Topics, named)
	done, err := commit.RequestWith(context.Background(), on.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(done.Topics[0].Partitions[0].ErrorCode)
}

func (on *kgoProducer) end(commit bool) error {
	return on.client.EndTransaction(context.Background(), kgo.TransactionEndTry(commit))
}

func (on *kgoProducer) close() error {
	on.client.Close()
	return nil
}

type saramaProducer struct{ sarama.SyncProducer }

func openSarama(bootstrap, id string, timeout time.Duration) (producer, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V4_1_0_0
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Transaction.ID = id
	config.Producer.Transaction.Timeout = timeout
	config.Producer.Retry.Max = 5
	config.Net.MaxOpenRequests = 1
	made, err := sarama.NewSyncProducer([]string{bootstrap}, config)
	return &saramaProducer{made}, err
}

func (on *saramaProducer) begin() error { return on.BeginTxn() }

func (on *saramaProducer) send(topic, value string) error {
	_, _, err := on.SendMessage(&sarama.ProducerMessage{Topic: topic, Partition: 0, Value: sarama.StringEncoder(value)})
	return err
}

func (on *saramaProducer) offset(group, topic string, offset int64) error {
	partition := &sarama.PartitionOffsetMetadata{Partition: 0, Offset: offset}
	return on.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{topic: {partition}}, group)
}

func (on *saramaProducer) end(commit bool) error {
	if commit {
		return on.CommitTxn()
	}
	return on.AbortTxn()
}

func (on *saramaProducer) close() error { return on.Close() }
