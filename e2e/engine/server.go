package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// A Server is a running server that is no engine: Kafka with its KRaft controller, or ZooKeeper. It ends with the process that started it.
type Server struct {
	Addr string // host:port

	kind Kind
	heap []string // the JVM's arguments for it
	home string
	node *process
}

// StartKafka brings up a broker of its own and waits until it takes connections. The first start on a machine fetches the jars.
func StartKafka(ctx context.Context) (*Server, error) {
	return startServer(ctx, &Server{kind: broker, heap: []string{"-Xms256m", "-Xmx256m"}})
}

// StartZooKeeper does the same for a ZooKeeper.
func StartZooKeeper(ctx context.Context) (*Server, error) {
	return startServer(ctx, &Server{kind: keeper, heap: []string{"-Xms64m", "-Xmx128m"}})
}

// PrepareKafka fetches and builds what a broker needs, unless it is there, and returns its folder.
func PrepareKafka(ctx context.Context) (string, error) { return Prepare(ctx, broker) }

// PrepareZooKeeper does the same for a ZooKeeper.
func PrepareZooKeeper(ctx context.Context) (string, error) { return Prepare(ctx, keeper) }

func startServer(ctx context.Context, s *Server) (*Server, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startTimeout)
		defer cancel()
	}
	var err error
	if s.home, err = os.MkdirTemp("", "optimist-"+s.kind.recipe().name+"-"); err != nil {
		return nil, fmt.Errorf("folder for %s: %w", s.kind.Title(), err)
	}
	if err := s.Restart(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.home))
	}
	return s, nil
}

// Restart starts the server on the folder that it has, at its address, if it has had one before.
func (s *Server) Restart(ctx context.Context) error {
	kit, err := prepare(ctx, s.kind)
	if err != nil {
		return err
	}
	port := "0"
	if s.Addr != "" {
		_, port, _ = net.SplitHostPort(s.Addr)
	}
	arguments := append([]string{kit.jdk.tool("java")}, s.heap...)
	arguments = append(arguments, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", kit.classPath(), s.kind.recipe().main, s.home, "port="+port)
	if s.node, err = launch(arguments, s.home); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrStart, s.kind.Title(), err)
	}
	if s.Addr, err = s.node.ready(ctx); err != nil {
		s.node.kill()
		return fmt.Errorf("%w: %s: %w\n%s", ErrStart, s.kind.Title(), err, s.node.logTail())
	}
	return nil
}

// Stop ends the server and deletes what it had.
func (s *Server) Stop() error {
	s.node.kill()
	return os.RemoveAll(s.home)
}

// Kill ends the server without notice. What it had stays for Restart.
func (s *Server) Kill() { s.node.kill() }

// Lose deletes what a ZooKeeper had, between Kill and Restart.
func (s *Server) Lose() error { return os.RemoveAll(filepath.Join(s.home, "data")) }
