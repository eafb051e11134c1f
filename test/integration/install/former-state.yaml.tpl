{{- /* What the operator writes itself. In the chart, empty, so that it goes when the chart goes; Helm never changes what is in it. */}}
{{- $labels := include "operator.labels" . }}
apiVersion: v1
kind: Secret
metadata:
  name: pulumi-kubernetes-operator-authority
  namespace: {{ .Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
type: Opaque
{{- /* A lease of the Go operator is its own, and Helm would refuse to take it over. */}}
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
