package undo

import (
	"context"
	"encoding/json"
	"slices"

	"optimist/internal/es"
)

// Each lock's document has a register: it names the journals that were begun under the document's leases and aren't settled yet.

// changeRegisters changes the registers of some locks' documents. No two of the locks are of one document. change reports false if it has
// changed nothing.
func (s *Store) changeRegisters(ctx context.Context, locks []Lock, change func(*register, *Lock) bool) error {
	return untilNone(locks, func(some []Lock) ([]Lock, error) { return s.changeSome(ctx, some, change) })
}

// changeSome tries once to change registers. again are the locks whose registers another process has written at the same time, or for which
// the engine's answer was lost.
func (s *Store) changeSome(ctx context.Context, locks []Lock, change func(*register, *Lock) bool) (again []Lock, err error) {
	registers, err := s.registers(ctx, locks)
	if err != nil {
		return nil, err
	}
	var changed []*record
	var of []Lock
	for i, r := range registers {
		if !change(r, &locks[i]) {
			continue
		}
		record := &record{id: registerID(r.Doc), in: r.numbers}
		if len(r.Open) > 0 { // an empty register is deleted: otherwise each lock that was ever held with undo would keep one
			record.is = r
		}
		changed, of = append(changed, record), append(of, locks[i])
	}
	if len(changed) == 0 {
		return nil, nil
	}
	if err := s.fault("register"); err != nil {
		return nil, err
	}
	if err := s.putAll(ctx, changed); err != nil {
		return nil, err
	}
	for i, r := range changed {
		if !r.put {
			again = append(again, of[i])
		}
	}
	return again, nil
}

// registers reads the registers of some locks' documents, in the order of the locks. A document without a register gets an empty one.
func (s *Store) registers(ctx context.Context, locks []Lock) ([]*register, error) {
	ids, all := each(locks, func(l Lock) string { return registerID(l.Doc) }), make([]*register, len(locks))
	err := s.getAll(ctx, ids, func(nth int, it *es.Item) error {
		all[nth] = &register{Kind: kindRegister, Doc: locks[nth].Doc, numbers: it.Numbers}
		if it.Missing {
			return nil
		}
		if err := json.Unmarshal(it.Source, all[nth]); err != nil {
			return unreadable(ids[nth], err)
		}
		return nil
	})
	return all, err
}

func (s *Store) register(ctx context.Context, lock string) (*register, error) {
	all, err := s.registers(ctx, []Lock{{Doc: lock}})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Registered returns those of the locks whose documents have unsettled journals. Errors: ErrStore.
func (s *Store) Registered(ctx context.Context, locks []Lock) (left []Lock, err error) {
	if err := s.own.Prepare(ctx); err != nil {
		return nil, err
	}
	for some := range slices.Chunk(locks, 2*pageEntries) {
		registers, err := s.registers(ctx, some)
		if err != nil {
			return nil, err
		}
		for i, r := range registers {
			if len(r.Open) > 0 {
				left = append(left, some[i])
			}
		}
	}
	return left, nil
}

// unregister takes the journals of leases off the registers of their locks.
func (s *Store) unregister(ctx context.Context, leases []Lock) error {
	return s.changeRegisters(ctx, leases, func(r *register, l *Lock) bool {
		before := len(r.Open)
		r.Open = slices.DeleteFunc(r.Open, func(b begun) bool { return b.Token == l.Token })
		return len(r.Open) < before
	})
}
