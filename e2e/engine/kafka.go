package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
)

// Kafka is a running broker with its KRaft controller. It ends with the process that started it.
type Kafka struct {
	Addr string // host:port

	home string
	node *process
}

// StartKafka brings up a broker of its own and waits until it takes connections. The first start on a machine fetches the jars.
func StartKafka(ctx context.Context) (*Kafka, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startTimeout)
		defer cancel()
	}
	home, err := os.MkdirTemp("", "optimist-kafka-")
	if err != nil {
		return nil, fmt.Errorf("folder for Kafka: %w", err)
	}
	k := &Kafka{home: home}
	if err := k.start(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	return k, nil
}

// PrepareKafka fetches and builds what a broker needs, unless it is there, and returns its folder.
func PrepareKafka(ctx context.Context) (string, error) { return Prepare(ctx, broker) }

// start starts the broker on the folder that it has, at its address, if it has had one before.
func (k *Kafka) start(ctx context.Context) error {
	kit, err := prepare(ctx, broker)
	if err != nil {
		return err
	}
	port := "0"
	if k.Addr != "" {
		_, port, _ = net.SplitHostPort(k.Addr)
	}
	k.node, err = launch([]string{kit.jdk.tool("java"), "-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", kit.classPath(), broker.recipe().main, k.home, "port=" + port}, k.home)
	if err != nil {
		return fmt.Errorf("%w: Kafka: %w", ErrStart, err)
	}
	if k.Addr, err = k.node.ready(ctx); err != nil {
		k.node.kill()
		return fmt.Errorf("%w: Kafka: %w\n%s", ErrStart, err, k.node.logTail())
	}
	return nil
}

// Stop ends it and deletes what it had.
func (k *Kafka) Stop() error {
	k.node.kill()
	return os.RemoveAll(k.home)
}
