// Package upstream keeps connections to the engine's nodes and carries one request at a time to one of them.
//
// It promises two things. A request that may have been applied is sent a second time only if its caller allowed that. Every
// failure says whether anything left this process. It doesn't promise an answer: it waits for one as long as the context
// allows, because a force merge is silent for hours. It interprets no body and no status.
package upstream
