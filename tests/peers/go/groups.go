package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const groupPartitions = 12
const perPartition = 20

// A crowd is the members of one group. It notes who owns which partition, and what was read of each.
type crowd struct {
	sync.Mutex
	group   string
	balance kgo.GroupBalancer
	broker  string
	owners  map[int32]string
	faults  []string
	read    map[int32]map[int64]bool
	members map[string]*kgo.Client
}

func (all *crowd) join(ctx context.Context, name string, options ...kgo.Opt) error {
	options = append([]kgo.Opt{kgo.SeedBrokers(all.broker), kgo.ConsumerGroup(all.group), kgo.ConsumeTopics(all.group),
		kgo.Balancers(all.balance), kgo.HeartbeatInterval(200 * time.Millisecond), kgo.ClientID(name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) { all.take(name, given) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) { all.giveUp(name, taken) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) { all.giveUp(name, taken) }),
	}, options...)
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	all.Lock()
	all.members[name] = client
	all.Unlock()
	go func() {
		for {
			moment, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			fetches := client.PollFetches(moment)
			cancel()
			if fetches.IsClientClosed() || ctx.Err() != nil {
				return
			}
			fetches.EachRecord(func(record *kgo.Record) {
				all.Lock()
				defer all.Unlock()
				if all.read[record.Partition] == nil {
					all.read[record.Partition] = map[int64]bool{}
				}
				all.read[record.Partition][record.Offset] = true
			})
			// Of a commit that crosses a new epoch the client is told, and has to commit again.
			err := client.CommitUncommittedOffsets(ctx)
			if err != nil && !errors.Is(err, kerr.StaleMemberEpoch) && ctx.Err() == nil {
				all.Lock()
				all.faults = append(all.faults, fmt.Sprintf("%s could not commit: %v", name, err))
				all.Unlock()
			}
			client.AllowRebalance()
		}
	}()
	return nil
}

func (all *crowd) leave(name string) {
	all.Lock()
	client := all.members[name]
	delete(all.members, name)
	all.Unlock()
	client.CloseAllowingRebalance()
}

func (all *crowd) take(name string, given map[string][]int32) {
	all.Lock()
	defer all.Unlock()
	for _, partition := range given[all.group] {
		if owner, isOwned := all.owners[partition]; isOwned && owner != name {
			all.faults = append(all.faults, fmt.Sprintf("%d belongs to %s and to %s", partition, owner, name))
		}
		all.owners[partition] = name
	}
}

func (all *crowd) giveUp(name string, taken map[string][]int32) {
	all.Lock()
	defer all.Unlock()
	for _, partition := range taken[all.group] {
		if all.owners[partition] == name {
			delete(all.owners, partition)
		}
	}
}

// Waits until every one of so many members has its equal share.
func (all *crowd) settle(ctx context.Context, count int) error {
	for ctx.Err() == nil {
		shares := map[string]int{}
		all.Lock()
		for _, owner := range all.owners {
			shares[owner]++
		}
		all.Unlock()
		isFair := len(shares) == count
		for _, share := range shares {
			isFair = isFair && share == groupPartitions/count
		}
		if isFair {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s: %d members did not settle: %v", all.group, count, all.owners)
}

// Members come and go: one, then six, then two; each record is read, and committed in the end.
func groups(name string, balance kgo.GroupBalancer, options ...kgo.Opt) func(context.Context, string) (any, error) {
	return func(ctx context.Context, broker string) (any, error) {
		admin, err := newAdmin(broker)
		if err != nil {
			return nil, err
		}
		defer admin.Close()
		all := &crowd{group: "franz-go-" + name, balance: balance, broker: broker,
			owners: map[int32]string{}, read: map[int32]map[int64]bool{}, members: map[string]*kgo.Client{}}
		if _, err := admin.CreateTopic(ctx, groupPartitions, 1, nil, all.group); err != nil {
			return nil, err
		}
		if err := fill(ctx, broker, all.group); err != nil {
			return nil, err
		}
		for number, count := range []int{1, 6, 2} {
			for len(all.members) < count {
				if err := all.join(ctx, fmt.Sprintf("member-%d", len(all.members)), options...); err != nil {
					return nil, err
				}
			}
			for len(all.members) > count {
				all.leave(fmt.Sprintf("member-%d", len(all.members)-1))
			}
			if err := all.settle(ctx, count); err != nil {
				return nil, err
			}
			if number > 0 {
				if err := fill(ctx, broker, all.group); err != nil {
					return nil, err
				}
			}
		}
		if err := caughtUp(ctx, admin, all.group); err != nil {
			return nil, err
		}
		for len(all.members) > 0 {
			all.leave(fmt.Sprintf("member-%d", len(all.members)-1))
		}
		read := 0
		for _, offsets := range all.read {
			read += len(offsets)
		}
		_, err = admin.DeleteGroup(ctx, all.group)
		return map[string]any{"read": read, "faults": all.faults}, err
	}
}

func fill(ctx context.Context, broker string, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	records := make([]*kgo.Record, groupPartitions*perPartition)
	for number := range records {
		records[number] = &kgo.Record{Topic: topic, Partition: int32(number % groupPartitions), Value: []byte("value")}
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

// Waits until the group has committed everything.
func caughtUp(ctx context.Context, admin *kadm.Client, group string) error {
	for ctx.Err() == nil {
		committed, err := admin.FetchOffsets(ctx, group)
		if err != nil {
			return err
		}
		ends, err := admin.ListEndOffsets(ctx, group)
		if err != nil {
			return err
		}
		behind := 0
		ends.Each(func(end kadm.ListedOffset) {
			if at, isThere := committed.Lookup(end.Topic, end.Partition); !isThere || at.At != end.Offset {
				behind++
			}
		})
		if behind == 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s did not commit everything", group)
}
