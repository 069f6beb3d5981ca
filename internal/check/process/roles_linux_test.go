package process_test

// viewRole performs the roles that this test program has in tests that need Linux.
func viewRole(role, argument string) {
	switch role {
	case "user":
		asUser(argument)
	case "view":
		inView(argument)
	case "nest":
		nest(argument)
	}
}
