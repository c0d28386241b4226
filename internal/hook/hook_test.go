package hook_test

import (
	"testing"

	"optimist/internal/hook"
)

func TestMissingHooksDoNothing(t *testing.T) {
	var hooks struct {
		One   hook.Func1[int]
		Two   hook.Func2[int, int]
		Three hook.Func3[int, int, int]
	}
	call := func() {
		hooks.One.Call(1)
		hooks.Two.Call(1, 2)
		hooks.Three.Call(1, 2, 3)
	}
	call()
	sum := 0
	hooks.One = func(a int) { sum += a }
	hooks.Two = func(a, b int) { sum += a * b }
	hooks.Three = func(a, b, c int) { sum += a * b * c }
	if call(); sum != 9 {
		t.Errorf("called with the sum %d", sum)
	}
}
