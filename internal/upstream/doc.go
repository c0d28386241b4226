// Package upstream keeps connections to the engine's nodes and carries one request at a time to one of them.
//
// It does not promise an answer: it promises that a request which may have been applied is never sent a second time unless
// its caller said that it may, and that every failure says whether anything left this process. It waits for an answer as
// long as the context allows, because a force merge is silent for hours. It interprets no body and no status.
package upstream
