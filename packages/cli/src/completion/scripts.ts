/** The completion scripts. All of them call `kubectl-pulumi __complete`, which answers as cobra programs do. */

export const shells = ["bash", "zsh", "fish", "kubectl"] as const;
export type Shell = (typeof shells)[number];

export const scripts: Readonly<Record<Shell, string>> = {
  bash: `# Completion of kubectl-pulumi for bash. To load it: source <(kubectl pulumi completion bash)
_kubectl_pulumi() {
  local IFS=$'\\n' line
  COMPREPLY=()
  while IFS= read -r line; do
    [[ $line == :* ]] && continue
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <(kubectl-pulumi __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _kubectl_pulumi kubectl-pulumi
`,
  zsh: `#compdef kubectl-pulumi
# Completion of kubectl-pulumi for zsh. To load it: source <(kubectl pulumi completion zsh)
_kubectl_pulumi() {
  local -a candidates
  local line
  while IFS= read -r line; do
    [[ $line == :* ]] && continue
    candidates+=("\${\${line//:/\\\\:}/$'\\t'/:}")
  done < <(kubectl-pulumi __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe 'kubectl-pulumi' candidates
}
compdef _kubectl_pulumi kubectl-pulumi
`,
  fish: `# Completion of kubectl-pulumi for fish. To load it: kubectl pulumi completion fish | source
function __kubectl_pulumi_complete
  set -l words (commandline -opc) (commandline -ct)
  kubectl-pulumi __complete $words[2..-1] 2>/dev/null | string match -v ':*'
end
complete -c kubectl-pulumi -f -a '(__kubectl_pulumi_complete)'
`,
  kubectl: `#!/bin/sh
# Completion of "kubectl pulumi" itself: kubectl runs this program. Save it as kubectl_complete-pulumi in a directory of PATH.
exec kubectl-pulumi __complete "$@"
`,
};
