package jsontext

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestPointersAreReadAsTheyAreWritten(t *testing.T) {
	for pointer, want := range map[string][]string{
		"": nil, "/": {""}, "/a": {"a"}, "/a/b/": {"a", "b", ""}, "/~01": {"~1"}, "/~1~0": {"/~"}, "/m~0n/a~1b": {"m~n", "a/b"}, "/*/-/0": {"*", "-", "0"},
	} {
		got, err := SplitPointer(pointer)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", pointer, got, err)
		}
		var again []byte
		for _, token := range got {
			again = AppendToken(again, token)
		}
		if string(again) != pointer {
			t.Errorf("%q became %q", pointer, again)
		}
	}
}

func TestWhatIsNoPointerIsRefused(t *testing.T) {
	for pointer, want := range map[string]error{
		"a": ErrPointerSlash, "~0": ErrPointerSlash, "/~": ErrPointerEscape, "/a~": ErrPointerEscape, "/~2": ErrPointerEscape,
		"/~0~": ErrPointerEscape, "/~~0": ErrPointerEscape, "/~/0": ErrPointerEscape,
		strings.Repeat("/", MaxNesting+1): ErrPointerDepth,
	} {
		if got, err := SplitPointer(pointer); !errors.Is(err, want) {
			t.Errorf("%q: %q, %v", pointer, got, err)
		}
	}
}

func TestAPointerGoesAsDeepAsADocument(t *testing.T) {
	if got, err := SplitPointer(strings.Repeat("/", MaxNesting)); err != nil || len(got) != MaxNesting {
		t.Errorf("%d tokens, %v", len(got), err)
	}
}
