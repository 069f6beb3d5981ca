package cli

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/cli/static"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

type versionInfo struct {
	Koboshi    string `json:"koboshi"`
	Kubernetes string `json:"kubernetes"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of Koboshi and its built-in Kubernetes",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versionInfo{
				Koboshi:    static.Koboshi(),
				Kubernetes: "v" + kubeversion.Version,
				Go:         runtime.Version(),
				Platform:   runtime.GOOS + "/" + runtime.GOARCH,
			}
			switch output {
			case "json":
				return json.NewEncoder(cmd.OutOrStdout()).Encode(v)
			case "":
				_, err := fmt.Fprint(cmd.OutOrStdout(), static.VersionLine())
				return err
			}
			return usageError{fmt.Errorf("unknown output format %q; use -o json, or omit -o", output)}
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}
