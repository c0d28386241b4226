package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"optimist/internal/config"
	"optimist/internal/secure"
)

// Unusable finds what a configuration names outside of itself and can't be used on this machine: files that aren't there or hold something
// else, and a folder that can't be made or written. No retry of New helps against any of these: somebody has to mend it first. It leaves
// nothing behind.
func Unusable(c *config.Config) config.Problems {
	f := &findings{config: c}
	for _, file := range c.Files() {
		f.file(file.Key, *file.Name)
	}
	f.content("listen_tls.cert_file", "listen_tls", func() error { return errorOf(listenerTLS(&c.ListenTLS, false, nil)) })
	if c.Admin != "" {
		f.content("admin_tls.cert_file", "admin_tls", func() error {
			return errorOf(listenerTLS((*config.ServerTLS)(&c.AdminTLS), true, nil))
		})
		if c.AdminTokenFile != "" {
			f.content("admin_token_file", "admin_token_file", func() error { return errorOf(secure.NewToken(c.AdminTokenFile, nil, nil)) })
		}
	}
	f.content("upstream.tls", "upstream.tls", func() error { return errorOf(upstreamTLS(&c.Upstream.TLS).Load()) })
	f.content("upstream.auth", "upstream.auth", func() error { return errorOf(c.Upstream.Auth.Authorization()) })
	f.content("undo.auth", "undo.auth", func() error { return errorOf(undoAuthorization(&c.Undo)) })
	if k := &c.DeadLetters.Kafka; c.DeadLetters.Sink == config.SinkKafka {
		f.content("dead_letters.kafka.ca_file", "dead_letters.kafka.ca_file", func() error { return errorOf(kafkaTLS(k.CAFile)) })
		f.content("dead_letters.kafka.basic_file", "dead_letters.kafka.basic_file", func() error { return errorOf(kafkaLogin(k)) })
	}
	f.folder(c)
	f.found.Sort()
	return f.found
}

func errorOf[T any](_ T, err error) error { return err }

// findings are what Unusable has found so far.
type findings struct {
	config *config.Config
	found  config.Problems
}

func (f *findings) add(key, format string, args ...any) {
	f.found = append(f.found, f.config.Warn(key, format, args...))
}

// file looks whether a file is there. It may well be where the configuration is used.
func (f *findings) file(key, name string) {
	if name == "" {
		return
	}
	switch _, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
		f.add(key, "the file does not exist here: %s", name)
	case err != nil:
		f.add(key, "the file can't be used here: %v", err)
	}
}

// content reads the files of a section as New does, unless one of them has been found already.
func (f *findings) content(key, section string, read func() error) {
	for i := range f.found {
		if strings.HasPrefix(f.found[i].Key, section) {
			return
		}
	}
	if err := read(); err != nil {
		text := strings.TrimPrefix(err.Error(), section)
		f.add(key, "%s", strings.TrimLeft(text, "."+": "))
	}
}

// folder tries whether the folder of dead letters can be written, or made.
func (f *findings) folder(c *config.Config) {
	folder := c.DeadLetters.Folder
	if folder == "" {
		if c.DeadLetters.Sink == config.SinkFile {
			f.add("dead_letters.sink", "file needs a folder: set dead_letters.folder, or the variable STATE_DIRECTORY for serve")
		}
		return
	}
	if !c.KeepsLetters() {
		return
	}
	for at := folder; ; at = filepath.Dir(at) {
		switch info, err := os.Stat(at); {
		case err == nil && !info.IsDir():
			f.add("dead_letters.folder", "the folder can't be made here: %s is a file", at)
			return
		case err == nil:
			if err := writable(at); err != nil {
				f.add("dead_letters.folder", "nothing can be written in %s here: %v", at, err)
			}
			return
		case at == filepath.Dir(at):
			return
		}
	}
}

// writable tries whether something can be made in a folder, and removes it again. A full disk, or a used-up quota, is no error: optimist
// runs on one, and an operator makes room by deleting letters.
func writable(folder string) error {
	name, err := os.MkdirTemp(folder, ".optimist-check-")
	switch {
	case isFull(err):
		return nil
	case err != nil:
		return err
	}
	return os.Remove(name)
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
