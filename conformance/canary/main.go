// Command canary is a controller that looks for everything that koboshi check must hide from
// controllers. It writes a line with its observations into the file seen, creates a ConfigMap, and
// watches ConfigMaps. The canaries canary.py and canary.sh in testdata do the same.
//
//	canary home HOME        it finds the cluster through .kube/config in its home directory
//	canary in-cluster HOME  it finds the cluster through the files of its service account
//
// HOME is the home directory of the user who runs koboshi check.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	how, theirs := os.Args[1], os.Args[2]
	reached := "yes"
	if err := write(how); err != nil {
		reached = err.Error()
	}
	line := fmt.Sprintf("reached=%s leaked=%s\n", reached, strings.Join(leaks(theirs), ","))
	file, err := os.OpenFile("seen", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(line)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "canary:", err)
		os.Exit(1)
	}
	select {}
}

// write creates a ConfigMap, and watches ConfigMaps as long as the program runs.
func write(how string) error {
	config, err := rest.InClusterConfig()
	if how == "home" {
		var home string
		if home, err = os.UserHomeDir(); err == nil {
			config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(home, ".kube", "config"))
		}
	}
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	configMaps := client.CoreV1().ConfigMaps("default")
	if _, err = configMaps.Watch(context.Background(), metav1.ListOptions{}); err != nil {
		return err
	}
	_, err = configMaps.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "canary"}}, metav1.CreateOptions{})
	return err
}

// leaks returns the variables and files of the user that contain the word canary-secret.
func leaks(theirs string) (found []string) {
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.Contains(value, "canary-secret") {
			found = append(found, name)
		}
	}
	home, _ := os.UserHomeDir()
	for _, dir := range []string{home, os.Getenv("XDG_CONFIG_HOME"), theirs} {
		for _, name := range []string{".aws/credentials", ".kube/config", "gcloud/key.json", ".config/gcloud/key.json"} {
			if data, _ := os.ReadFile(filepath.Join(dir, name)); strings.Contains(string(data), "canary-secret") {
				found = append(found, filepath.Join(dir, name))
			}
		}
	}
	return found
}
