//go:build !unix

package wire

const canTurn = false

func writeOnce(uintptr, []byte) (int, error) { return 0, nil }

func readOnce(uintptr, []byte) (n int, wait bool, err error) { return 0, false, nil }
