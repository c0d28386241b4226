package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// ZooKeeper is a running server. It ends with the process that started it.
type ZooKeeper struct {
	Addr string // host:port

	home string
	node *process
}

// StartZooKeeper brings up a server of its own and waits until it takes connections. The first start on a machine fetches the jars.
func StartZooKeeper(ctx context.Context) (*ZooKeeper, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startTimeout)
		defer cancel()
	}
	home, err := os.MkdirTemp("", "optimist-zookeeper-")
	if err != nil {
		return nil, fmt.Errorf("folder for ZooKeeper: %w", err)
	}
	z := &ZooKeeper{home: home}
	if err := z.start(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	return z, nil
}

// PrepareZooKeeper fetches and builds what a server needs, unless it is there, and returns its folder.
func PrepareZooKeeper(ctx context.Context) (string, error) { return Prepare(ctx, keeper) }

// start starts the server on the folder that it has, at its address, if it has had one before.
func (z *ZooKeeper) start(ctx context.Context) error {
	kit, err := prepare(ctx, keeper)
	if err != nil {
		return err
	}
	port := "0"
	if z.Addr != "" {
		_, port, _ = net.SplitHostPort(z.Addr)
	}
	z.node, err = launch([]string{kit.jdk.tool("java"), "-Xms64m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", kit.classPath(), keeper.recipe().main, z.home, "port=" + port}, z.home)
	if err != nil {
		return fmt.Errorf("%w: ZooKeeper: %w", ErrStart, err)
	}
	if z.Addr, err = z.node.ready(ctx); err != nil {
		z.node.kill()
		return fmt.Errorf("%w: ZooKeeper: %w\n%s", ErrStart, err, z.node.logTail())
	}
	return nil
}

// Stop ends it and deletes what it had.
func (z *ZooKeeper) Stop() error {
	z.node.kill()
	return os.RemoveAll(z.home)
}

// Kill ends it without notice. What it had stays for Restart.
func (z *ZooKeeper) Kill() { z.node.kill() }

// Lose deletes what it had, between Kill and Restart.
func (z *ZooKeeper) Lose() error { return os.RemoveAll(filepath.Join(z.home, "data")) }

// Restart starts it again at its address, with what it had.
func (z *ZooKeeper) Restart(ctx context.Context) error { return z.start(ctx) }
