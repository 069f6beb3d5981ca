package home

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
)

// credentials lists where common tools keep credentials in a home directory.
var credentials = []string{
	".aws", ".azure", ".boto", ".cargo/credentials.toml", ".config/containers", ".config/doctl", ".config/gcloud", ".config/gh",
	".config/hcloud", ".config/rclone", ".docker", ".git-credentials", ".gnupg", ".kube", ".local/share/keyrings", ".m2/settings.xml",
	".netrc", ".npmrc", ".oci", ".password-store", ".pypirc", ".s3cfg", ".ssh", ".terraform.d", ".vault-token",
}

// Credentials returns the existing files and folders in the user's home directories that usually
// contain credentials. A program can find the user's home directory even if HOME names another
// directory, because the system's list of users contains its path.
func Credentials() []string {
	var homes, found []string
	if dir, err := os.UserHomeDir(); err == nil {
		homes = append(homes, dir)
	}
	if account, err := user.Current(); err == nil && filepath.IsAbs(account.HomeDir) && !slices.Contains(homes, account.HomeDir) {
		homes = append(homes, account.HomeDir)
	}
	for _, dir := range homes {
		for _, name := range credentials {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if _, err := os.Stat(path); err == nil {
				found = append(found, path)
			}
		}
	}
	return found
}
