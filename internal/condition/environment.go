package condition

import (
	"sync"
	"unsafe"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/stdlib"
	"cel.dev/cel-go/common/types"

	"optimist/rewrite/edit"
)

// environment is what expressions may refer to. It takes a millisecond to make, and is the same for all.
var environment = sync.OnceValues(newEnvironment)

func newEnvironment() (*cel.Env, error) {
	var without []*env.Function
	var functions []*decls.FunctionDecl
	instead := operations()
	for _, f := range stdlib.Functions() {
		op := instead[f.Name()]
		if op == nil {
			continue
		}
		without = append(without, env.NewFunction(f.Name()))
		options := []decls.FunctionOpt{decls.SingletonBinaryBinding(op)}
		for _, o := range f.OverloadDecls() {
			result := o.ResultType()
			if result.IsExactType(types.IntType) || result.IsExactType(types.UintType) || result.IsExactType(types.DoubleType) {
				// current.n * 3 is an int or a double: that depends on the document, and so what it may be compared with.
				result = types.DynType
			}
			options = append(options, decls.Overload(o.ID(), o.ArgTypes(), result))
		}
		decl, err := decls.NewFunction(f.Name(), options...)
		if err != nil {
			return nil, err
		}
		functions = append(functions, decl)
	}
	// A conversion to double is the one way to a number that isn't exact.
	without = append(without, env.NewFunction("double"))
	return cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(env.NewLibrarySubset().AddExcludedFunctions(without...))),
		cel.FunctionDecls(functions...),
		cel.OptionalTypes(),
		cel.Variable("request.method", cel.StringType),
		cel.Variable("request.op", cel.StringType),
		cel.Variable("request.index", cel.StringType),
		cel.Variable("request.id", cel.StringType),
		cel.Variable("request.routing", cel.StringType),
		cel.Variable("request.user", cel.StringType),
		cel.Variable("request.time", cel.TimestampType),
		cel.Variable("request.headers", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("incoming", cel.DynType),
		cel.Variable("current", cel.DynType),
		cel.Variable("base", cel.DynType),
		cel.Variable("candidate", cel.DynType),
	)
}

// An activation is the variables of one evaluation. What is not asked for is not looked at; a document is opened once.
type activation struct {
	meter
	in                                 *edit.Inputs
	incoming, current, base, candidate any
}

func newActivation(in *edit.Inputs) *activation {
	const atLeast, times = 16 << 20, 4
	return &activation{in: in, meter: meter{left: atLeast + times*(len(in.Incoming)+len(in.Current)+len(in.Base)+len(in.Candidate))}}
}

// ResolveName is the value of a variable.
func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case "incoming":
		return a.open(&a.incoming, a.in.Incoming), true
	case "current":
		return a.open(&a.current, a.in.Current), true
	case "base":
		return a.open(&a.base, a.in.Base), true
	case "candidate":
		return a.open(&a.candidate, a.in.Candidate), true
	case "request.method":
		return types.String(a.in.Method), true
	case "request.op":
		return types.String(a.in.Op), true
	case "request.index":
		return types.String(a.in.Index), true
	case "request.id":
		return types.String(a.in.ID), true
	case "request.routing":
		return types.String(a.in.Routing), true
	case "request.user":
		return types.String(a.in.User), true
	case "request.time":
		return types.Timestamp{Time: a.in.Now}, true
	case "request.headers":
		return &headers{get: a.in.Header}, true
	}
	return nil, false
}

// Parent is nil: there are no other variables.
func (a *activation) Parent() cel.Activation { return nil }

// open returns the value of a document, from kept if it was opened before.
func (a *activation) open(kept *any, doc []byte) any {
	if *kept == nil {
		// No copy: nothing changes the document while the expression is evaluated, and only a bool is left of it then.
		*kept = place{&a.meter, 0}.valueOf(unsafe.String(unsafe.SliceData(doc), len(doc))) //nolint:gosec // see above
	}
	return *kept
}
