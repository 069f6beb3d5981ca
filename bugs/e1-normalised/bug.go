package e1

// fromEmptyList has the bug of restatedev/restate-operator#72. It applies an empty list
// of peers as "from: []". The API server stores no list at all, so the next apply is a
// change again, which leads to a new generation, an event, and another apply.
func fromEmptyList(port int64) map[string]any {
	return map[string]any{
		"from":  []any{},
		"ports": []any{map[string]any{"port": port, "protocol": "TCP"}},
	}
}
