package outcome

// Failure is an error with what is known of the write's outcome, for the header.
type Failure struct {
	Outcome Outcome
	Err     error
}

// Error is the cause's.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }
