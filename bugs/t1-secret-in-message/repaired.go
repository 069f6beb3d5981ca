package t1

import "net/url"

// withoutPassword shows the URL of the service in messages, with a placeholder for the password.
//
// RIGHT: the message explains the failure, and reveals nothing.
func withoutPassword(service *url.URL) string { return service.Redacted() }
