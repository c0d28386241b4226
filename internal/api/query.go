package api

import "optimist/internal/uri"

// Param is uri.Param.
func Param(query []byte, name string) (value []byte, ok bool) { return uri.Param(query, name) }

// Without is uri.Without.
func Without(dst, query []byte, names ...string) []byte { return uri.Without(dst, query, names...) }

// Only is uri.Only.
func Only(dst, query []byte, names ...string) []byte { return uri.Only(dst, query, names...) }

// Decode is uri.Decode.
func Decode(dst, raw []byte) ([]byte, error) { return uri.Decode(dst, raw) }

// DecodeValue is uri.DecodeValue.
func DecodeValue(dst, raw []byte) ([]byte, error) { return uri.DecodeValue(dst, raw) }

// Unescape is uri.Unescape.
func Unescape(dst, raw []byte) ([]byte, error) { return uri.Unescape(dst, raw) }

// AppendSegment is uri.AppendSegment.
func AppendSegment(dst []byte, name string) []byte { return uri.AppendSegment(dst, name) }
