package e1

// fromLeftOut omits an empty list, as the API server does.
func fromLeftOut(port int64) map[string]any {
	return map[string]any{
		"ports": []any{map[string]any{"port": port, "protocol": "TCP"}},
	}
}
