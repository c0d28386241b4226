package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/alecthomas/kong"

	"optimist/internal/unit"
)

// valueMappers read the values of flags and arguments. They say what a value has to look like, where kong names Go's types.
func valueMappers() []kong.Option {
	registry := kong.NewRegistry().RegisterDefaults()
	return []kong.Option{
		kong.KindMapper(reflect.Int, kong.MapperFunc(wholeNumber)),
		kong.KindMapper(reflect.Int64, kong.MapperFunc(wholeNumber)),
		kong.KindMapper(reflect.String, withValue(registry.ForType(reflect.TypeFor[string]()))),
		kong.KindMapper(reflect.Slice, withValue(registry.ForType(reflect.TypeFor[[]string]()))),
		kong.TypeMapper(reflect.TypeFor[unit.Duration](), withValue(registry.ForType(reflect.TypeFor[unit.Duration]()))),
	}
}

// withValue reads what next reads, and says so if a flag has no value.
func withValue(next kong.Mapper) kong.Mapper {
	return kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		if ctx.Value.Flag != nil && !hasValue(ctx) {
			return fmt.Errorf("the value is missing; write it as in %s", ctx.Value.Summary())
		}
		return next.Decode(ctx, target)
	})
}

// hasValue reports whether a value follows. What begins with a minus and a digit is one, although it looks like a flag: the command says
// what is wrong with it.
func hasValue(ctx *kong.DecodeContext) bool {
	next := ctx.Scan.Peek()
	if text := next.String(); next.Type == kong.UntypedToken && len(text) > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9' {
		ctx.Scan.Pop()
		ctx.Scan.PushTyped(text, kong.FlagValueToken)
		return true
	}
	return next.IsValue()
}

// wholeNumber reads a number.
func wholeNumber(ctx *kong.DecodeContext, target reflect.Value) error {
	example := ctx.Value.ShortSummary() + "=" + cmp.Or(ctx.Value.Default, "7")
	if !hasValue(ctx) {
		return fmt.Errorf("the value is missing; write it as in %s", example)
	}
	text := ctx.Scan.Pop().String()
	n, err := strconv.ParseInt(text, 10, target.Type().Bits())
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%s is too large", text)
	case err != nil:
		return fmt.Errorf("%q is not a whole number; write it as in %s", text, example)
	}
	target.SetInt(n)
	return nil
}
