package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// deployed is a file of examples/deploy.
func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// leaveWithin is the time that a configuration file gives to leave, which run must
// take.
func leaveWithin(t *testing.T, text string) time.Duration {
	t.Helper()
	if _, err := configured(clitest.WriteFile(t, "node.yaml", text)); err != nil {
		t.Error(err)
	}
	var settings struct {
		Within time.Duration `yaml:"leave-within"`
	}
	if err := yaml.Unmarshal([]byte(text), &settings); err != nil || settings.Within <= 0 {
		t.Errorf("leave-within: %s, error %v", settings.Within, err)
	}
	if strings.Contains(text, "checkpoint-every") {
		t.Error("the alarm of old checkpoints is for the default of --checkpoint-every")
	}
	return settings.Within
}

// TestSystemdUnit shows that the unit is one that systemd takes, and fits the exit codes
// and the settings beside it.
func TestSystemdUnit(t *testing.T) {
	text := deployed(t, "gossipnode.service")
	values := make(map[string]string)
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok && !strings.HasPrefix(key, "#") {
			values[key] = value
		}
	}
	stop, err := time.ParseDuration(values["TimeoutStopSec"])
	if within := leaveWithin(t, deployed(t, "node.yaml")); err != nil || stop <= within {
		t.Errorf("systemd kills after %s, and the peer leaves within %s", stop, within)
	}
	if values["Restart"] != "on-failure" || values["RestartPreventExitStatus"] != fmt.Sprint(cli.ExitUsage, 3, 4, cli.ExitConfig) || values["KillSignal"] != "SIGTERM" {
		t.Errorf("exit codes: %v", values)
	}
	if !strings.Contains(deployed(t, "node.yaml"), "checkpoint: /var/lib/"+values["StateDirectory"]) {
		t.Error("the checkpoints are not in the folder of the state")
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze here to check the unit with")
	}
	// It also looks whether the program is there.
	unit := filepath.Join(t.TempDir(), "gossipnode.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(text, "/usr/local/bin/gossipnode", os.Args[0])), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), "gossipnode.service:") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// probe asks a container how it is.
type probe struct {
	Get struct{ Path, Port string } `yaml:"httpGet"`
}

// object is a Kubernetes object, as far as the checks look.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		ClusterIP                string `yaml:"clusterIP"`
		PublishNotReadyAddresses bool   `yaml:"publishNotReadyAddresses"`
		ServiceName              string `yaml:"serviceName"`
		PodManagementPolicy      string `yaml:"podManagementPolicy"`
		Replicas                 int
		Selector                 any
		Template                 struct {
			Spec struct {
				TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
				SecurityContext               struct {
					RunAsNonRoot bool `yaml:"runAsNonRoot"`
				} `yaml:"securityContext"`
				Containers []struct {
					Args  []string
					Env   []struct{ Name, Value string }
					Ports []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
					LivenessProbe  probe `yaml:"livenessProbe"`
					ReadinessProbe probe `yaml:"readinessProbe"`
					VolumeMounts   []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
					SecurityContext struct {
						ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
					} `yaml:"securityContext"`
				}
			}
		}
		VolumeClaimTemplates []struct {
			Metadata struct{ Name string }
		} `yaml:"volumeClaimTemplates"`
	}
}

// objects are those of the manifest, by kind.
func objects(t *testing.T) map[string]object {
	t.Helper()
	found := make(map[string]object)
	for decoder := yaml.NewDecoder(strings.NewReader(deployed(t, "kubernetes.yaml"))); ; {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[o.Kind] = o
	}
}

// TestKubernetes shows that the parts of the manifest fit each other and the program.
func TestKubernetes(t *testing.T) {
	all := objects(t)
	service, set, settings := all["Service"], all["StatefulSet"], all["ConfigMap"]
	if service.Spec.ClusterIP != "None" || !service.Spec.PublishNotReadyAddresses {
		t.Errorf("the service is not headless, or hides those who are to be joined: %+v", service.Spec)
	}
	if set.Spec.ServiceName != service.Metadata.Name || set.Spec.PodManagementPolicy != "Parallel" || set.Spec.Replicas < 2 {
		t.Errorf("%+v", set.Spec)
	}
	pod := set.Spec.Template.Spec
	text := settings.Data["node.yaml"]
	if grace := time.Duration(pod.TerminationGracePeriodSeconds) * time.Second; grace <= leaveWithin(t, text) {
		t.Errorf("a pod is killed after %s, before the peer has left", grace)
	}
	if len(pod.Containers) != 1 || !pod.SecurityContext.RunAsNonRoot || !pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem {
		t.Fatalf("%+v", pod)
	}
	c := pod.Containers[0]
	if strings.Join(c.Args, " ") != "run --config /etc/gossipnode/node.yaml" || c.VolumeMounts[1].MountPath != "/etc/gossipnode" {
		t.Errorf("arguments %v, volumes %v", c.Args, c.VolumeMounts)
	}
	if len(set.Spec.VolumeClaimTemplates) != 1 || set.Spec.VolumeClaimTemplates[0].Metadata.Name != c.VolumeMounts[0].Name ||
		!strings.Contains(text, "checkpoint: "+c.VolumeMounts[0].MountPath+"/") {
		t.Errorf("the checkpoints are on no volume of the peer's own: %+v", c.VolumeMounts)
	}
	if alive, ready := c.LivenessProbe.Get, c.ReadinessProbe.Get; alive.Path != "/healthz" || ready.Path != "/readyz" || alive.Port != "metrics" || ready.Port != "metrics" {
		t.Errorf("probes %+v and %+v", alive, ready)
	}
	var config struct {
		Join     []string
		Listen   []string
		MinPeers int `yaml:"min-peers"`
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	for _, address := range config.Join {
		if !strings.HasPrefix(address, set.Metadata.Name+"-") || !strings.HasSuffix(address, "."+service.Metadata.Name+":4001") {
			t.Errorf("%s is no name of a pod", address)
		}
	}
	if config.MinPeers != set.Spec.Replicas || c.Ports[0].ContainerPort != 4001 || config.Listen[0] != "0.0.0.0:4001" {
		t.Errorf("%+v, ports %+v, %d replicas", config, c.Ports, set.Spec.Replicas)
	}
	for _, variable := range c.Env {
		if name, ok := strings.CutPrefix(variable.Name, cli.EnvironmentPrefix); ok {
			t.Setenv(variable.Name, strings.ReplaceAll(variable.Value, "$(POD_INDEX)", "3"))
			if s, err := configured(""); err != nil || name != "PART" || s.Part != "3/4" {
				t.Errorf("%+v: part %q, error %v", variable, s.Part, err)
			}
		}
	}
}

// TestDockerfile: the image is built with the Go of go.mod, from what is not left out of its context, as a program that
// needs nothing else, for a user who is not root.
func TestDockerfile(t *testing.T) {
	text, module := deployed(t, "Dockerfile"), deployed(t, "../../go.mod")
	_, after, _ := strings.Cut(module, "\ngo ")
	release, _, _ := strings.Cut(after, "\n")
	major, minor, _ := strings.Cut(release, ".")
	minor, _, _ = strings.Cut(minor, ".")
	for _, want := range []string{"FROM golang:" + major + "." + minor + " AS build", "CGO_ENABLED=0 go build", "/peer/control.version=$VERSION", "./examples/gossipnode\n",
		"FROM scratch", "USER 65532:65532", `ENTRYPOINT ["/gossipnode"]`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, line := range strings.Split(deployed(t, "../../.dockerignore"), "\n") {
		for _, needed := range []string{"peer", "internal", "examples", "go.mod", "go.sum"} {
			if line == needed || line == "*" {
				t.Errorf("%s is left out of what the image is built from", line)
			}
		}
	}
}

// TestIssueForms: GitHub takes the forms, and who reports a fault is asked what doctor says.
func TestIssueForms(t *testing.T) {
	forms, err := filepath.Glob("../../.github/ISSUE_TEMPLATE/*.yml")
	if err != nil || len(forms) < 3 {
		t.Fatalf("%v, error %v", forms, err)
	}
	for _, path := range forms {
		text := deployed(t, filepath.Join("../gossipnode", path))
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes struct{ Label string }
			}
		}
		if err := yaml.Unmarshal([]byte(text), &form); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if filepath.Base(path) == "config.yml" {
			continue
		}
		seen := map[string]bool{}
		for _, field := range form.Body {
			if field.Type == "" || field.ID == "" || field.Attributes.Label == "" || seen[field.ID] {
				t.Errorf("%s: %+v", path, field)
			}
			seen[field.ID] = true
		}
		if form.Name == "" || form.Description == "" || len(seen) == 0 {
			t.Errorf("%s: %+v", path, form)
		}
		if filepath.Base(path) == "fault.yml" && !(strings.Contains(text, "doctor --json") && strings.Contains(text, "version --json")) {
			t.Errorf("%s asks for no doctor --json and version --json", path)
		}
	}
}
