// A member of a group by franz-go (kgo). Prints "owns P,P,..." after each rebalance and "got VALUE".
//
// member BOOTSTRAP GROUP TOPIC PROTOCOL: PROTOCOL is classic (cooperative-sticky) or consumer (KIP-848). It leaves when its
// input ends.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	bootstrap, group, topic, protocol := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	var lock sync.Mutex
	owned := map[int32]bool{}
	changed := func(has bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			lock.Lock()
			defer lock.Unlock()
			for _, partition := range partitions[topic] {
				if has {
					owned[partition] = true
				} else {
					delete(owned, partition)
				}
			}
			var names []string
			for partition := range owned {
				names = append(names, strconv.Itoa(int(partition)))
			}
			slices.Sort(names)
			fmt.Println("owns " + strings.Join(names, ","))
		}
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.ClientID("franz-go"),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.HeartbeatInterval(100*time.Millisecond),
		kgo.SessionTimeout(6*time.Second),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.OnPartitionsAssigned(changed(true)),
		kgo.OnPartitionsRevoked(changed(false)),
		kgo.OnPartitionsLost(changed(false)),
	}
	if protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	ending, end := context.WithCancel(context.Background())
	go func() {
		bufio.NewScanner(os.Stdin).Scan()
		end()
	}()
	for ending.Err() == nil {
		client.PollFetches(ending).EachRecord(func(record *kgo.Record) { fmt.Println("got " + string(record.Value)) })
	}
	client.Close()
}
