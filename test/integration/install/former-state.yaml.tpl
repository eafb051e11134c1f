{{- /* The operator writes the data. The chart contains the empty objects so that Helm deletes them; Helm never changes their data. */}}
{{- $labels := include "operator.labels" . }}
apiVersion: v1
kind: Secret
metadata:
  name: pulumi-kubernetes-operator-authority
  namespace: {{ .Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
type: Opaque
{{- /* Helm cannot adopt a lease of the Go operator. */}}
{{- $lease := lookup "coordination.k8s.io/v1" "Lease" .Release.Namespace "operator.pulumi.com" }}
{{- if or (not $lease) (eq (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $lease) .Release.Name) }}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: operator.pulumi.com
  namespace: {{ .Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
{{- end }}
