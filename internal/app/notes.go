package app

import (
	"errors"
	"slices"
	"strings"

	"optimist/internal/config"
	"optimist/internal/filelock"
	"optimist/internal/notefile"
	"optimist/internal/obs"
)

// openNotes opens the file in which the numbers of what clients have seen outlive the process. Without it optimist serves as well: the log
// says so. An engine in memory begins anew with each start, and nothing that was noted of it is true any more.
func (a *App) openNotes(c *config.Config) {
	file := c.Sessions.File
	if file == "" || a.o.InMemory || a.o.Settled {
		return
	}
	urls := slices.Sorted(slices.Values(c.Upstream.URLs)) // numbers of another cluster mean other documents
	book, aside, err := notefile.Open(file, []byte(strings.Join(urls, "\n")))
	if aside != "" {
		a.log.Warn("the sessions' file isn't one, or is damaged: it is set aside", obs.KeyFile, file, "aside", aside)
	}
	switch {
	case errors.Is(err, filelock.ErrInUse):
		a.log.Error("another process uses the sessions' file: what clients have read won't outlive this one", obs.KeyFile, file)
	case err != nil:
		a.log.Error("the sessions' file can't be used: what clients have read won't outlive this process", obs.KeyFile, file,
			obs.KeyError, err.Error())
	default:
		book.Lost = func(err error) {
			a.log.Error("the sessions' file is lost: what clients read from now on won't outlive this process", obs.KeyFile, file,
				obs.KeyError, err.Error())
		}
		book.MaxAge = c.Sessions.MaxAge.Std()
		a.notes = book
	}
}
