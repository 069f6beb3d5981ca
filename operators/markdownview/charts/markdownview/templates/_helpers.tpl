{{/* The prefix of all names. */}}
{{- define "markdownview.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 30 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 30 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 30 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "markdownview.labels" -}}
app.kubernetes.io/name: markdownview
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The Pods of the manager. */}}
{{- define "markdownview.selector" -}}
control-plane: controller-manager
app.kubernetes.io/name: markdownview
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "markdownview.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* "--flag=value", or nothing when the value is null. Numbers are written in full,
     because the flags do not accept 1e+06. */}}
{{- define "markdownview.flag" -}}
{{- $flag := index . 0 -}}{{- $value := index . 1 -}}
{{- if kindIs "slice" $value -}}
{{- with $value }}
- {{ printf "--%s=%s" $flag (join "," .) | quote }}
{{- end -}}
{{- else if or (kindIs "float64" $value) (kindIs "int64" $value) (kindIs "int" $value) }}
- {{ printf "--%s=%s" $flag (toJson $value) | quote }}
{{- else if not (kindIs "invalid" $value) }}
- {{ printf "--%s=%v" $flag $value | quote }}
{{- end -}}
{{- end -}}

{{/* The namespaces to watch, as a list. watchNamespaces is the old name. */}}
{{- define "markdownview.namespaces" -}}
{{- if and .Values.namespaces .Values.watchNamespaces -}}
{{- fail "set only namespaces: watchNamespaces is its old name" -}}
{{- end -}}
{{- .Values.namespaces | default .Values.watchNamespaces | default list | toYaml -}}
{{- end -}}

{{/* Refuses equal ports, because the manager would not start. */}}
{{- define "markdownview.checkPorts" -}}
{{- $ports := list (int .Values.healthProbe.port) (int .Values.webhook.port) -}}
{{- if .Values.metrics.enabled -}}{{- $ports = append $ports (int .Values.metrics.port) -}}{{- end -}}
{{- if ne (len $ports) (len (uniq $ports)) -}}
{{- fail "healthProbe.port, webhook.port and metrics.port must differ" -}}
{{- end -}}
{{- end -}}

{{- define "markdownview.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "markdownview.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
  - ALL
{{- end -}}

{{/* The name of the Secret with a certificate. cert-manager and the chart use different
     Secrets, because neither could take over the Secret of the other. */}}
{{- define "markdownview.certSecret" -}}
{{- $root := index . 0 -}}{{- $what := index . 1 -}}
{{ include "markdownview.fullname" $root }}-{{ $what }}-{{ ternary "server-cert" "self-signed" $root.Values.certManager.enabled }}
{{- end -}}

{{- define "markdownview.dnsNames" -}}
{{- $root := index . 0 -}}{{- $service := index . 1 -}}
- {{ $service }}.{{ $root.Release.Namespace }}.svc
- {{ $service }}.{{ $root.Release.Namespace }}.svc.cluster.local
{{- end -}}

{{/* A certificate that the chart makes. If the cluster has the Secret, this returns its
     certificate; otherwise it makes a new one. Call it only once for each Secret, because
     each call may make a different certificate. The result has the keys of the Secret,
     with values in base64. */}}
{{- define "markdownview.selfSigned" -}}
{{- $root := index . 0 -}}{{- $what := index . 1 -}}{{- $service := index . 2 -}}
{{- $found := lookup "v1" "Secret" $root.Release.Namespace (include "markdownview.certSecret" (list $root $what)) -}}
{{- $data := dict -}}
{{- if $found -}}{{- $data = $found.data | default dict -}}{{- end -}}
{{- if and (hasKey $data "ca.crt") (hasKey $data "tls.crt") (hasKey $data "tls.key") -}}
{{- pick $data "ca.crt" "tls.crt" "tls.key" | toYaml -}}
{{- else -}}
{{- $names := include "markdownview.dnsNames" (list $root $service) | fromYamlArray -}}
{{- $ca := genCA (printf "%s %s" (include "markdownview.fullname" $root) $what) 3650 -}}
{{- $cert := genSignedCert (first $names) nil $names 3650 $ca -}}
{{- dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $cert.Cert) "tls.key" (b64enc $cert.Key) | toYaml -}}
{{- end -}}
{{- end -}}

{{/* The Secret with a certificate of markdownview.selfSigned. */}}
{{- define "markdownview.selfSignedSecret" -}}
{{- $root := index . 0 -}}{{- $what := index . 1 -}}{{- $data := index . 2 -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ include "markdownview.certSecret" (list $root $what) }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "markdownview.labels" $root | nindent 4 }}
type: kubernetes.io/tls
data:
  {{- toYaml $data | nindent 2 }}
{{- end -}}

{{/* The Certificate for which cert-manager makes the Secret. */}}
{{- define "markdownview.certificate" -}}
{{- $root := index . 0 -}}{{- $what := index . 1 -}}{{- $name := index . 2 -}}{{- $service := index . 3 -}}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ include "markdownview.fullname" $root }}-{{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "markdownview.labels" $root | nindent 4 }}
spec:
  dnsNames:
  {{- include "markdownview.dnsNames" (list $root $service) | nindent 2 }}
  issuerRef:
    {{- if $root.Values.certManager.issuerRef }}
    {{- toYaml $root.Values.certManager.issuerRef | nindent 4 }}
    {{- else }}
    kind: Issuer
    name: {{ include "markdownview.fullname" $root }}-selfsigned-issuer
    {{- end }}
  privateKey:
    algorithm: ECDSA
    rotationPolicy: Always
  secretName: {{ include "markdownview.certSecret" (list $root $what) }}
{{- end -}}

{{/* Binds a role to the manager. The arguments are the root, the kind and name of the
     binding, the kind and name of the role, and the namespace or "". */}}
{{- define "markdownview.binding" }}
{{- $root := index . 0 -}}{{- $kind := index . 1 -}}{{- $binding := index . 2 -}}{{- $roleKind := index . 3 -}}{{- $role := index . 4 -}}{{- $namespace := index . 5 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ include "markdownview.fullname" $root }}-{{ $binding }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "markdownview.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $roleKind }}
  name: {{ include "markdownview.fullname" $root }}-{{ $role }}
subjects:
- kind: ServiceAccount
  name: {{ include "markdownview.fullname" $root }}-controller-manager
  namespace: {{ $root.Release.Namespace }}
{{- end }}
