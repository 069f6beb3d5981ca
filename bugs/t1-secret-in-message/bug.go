package t1

import "net/url"

// whole shows the URL of the service in messages.
//
// WRONG: the URL contains the password of the administrator. When the service fails, everybody who
// can read accounts, or the log, can read the password. The bug is taken from
// k8ssandra/k8ssandra#1396, where the message was that of an Event.
func whole(service *url.URL) string { return service.String() }
