package e1

// fromEmptyList has the bug of restatedev/restate-operator#72: an empty list of peers
// is applied as "from: []". The API server stores no list at all, so the next apply is a
// change again: a new generation, an event, and the next apply.
func fromEmptyList(port int64) map[string]any {
	return map[string]any{
		"from":  []any{},
		"ports": []any{map[string]any{"port": port, "protocol": "TCP"}},
	}
}
