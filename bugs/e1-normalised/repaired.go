package e1

// fromLeftOut says nothing where there is nothing to say, as the API server will
// keep it.
func fromLeftOut(port int64) map[string]any {
	return map[string]any{
		"ports": []any{map[string]any{"port": port, "protocol": "TCP"}},
	}
}
