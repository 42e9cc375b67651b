import { shellQuote } from '../../terminal/curl-example.ts';
import type { CommandEntry, Value } from './command-table.ts';

/**
 * Returns the script that completes the command in zsh. A user can run it with `eval` after `compinit`, or store it as the file
 * `_runyard` in a folder of `$fpath`.
 */
export function zshCompletion(table: readonly CommandEntry[]): string {
  return `#compdef runyard
# Completions of runyard for zsh. Use: eval "$(bin/runyard completion zsh)"
_runyard() {
  local at='' word i count=0
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    case "$at/$word" in
      ${table
        .filter(({ path }) => path !== '')
        .map(({ path }) => shellQuote(path))
        .join('|')}) at=$at/$word ;;
      */-*) case "$at $word" in
        ${withValue(table)}) i=$((i + 1)) ;;
      esac ;;
      *) count=$((count + 1)) ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${table
  .flatMap(({ path, options }) =>
    options.flatMap(({ names, value }) =>
      value ? [`    ${names.map((name) => shellQuote(`${path} ${name}`)).join('|')}) ${reply(value)}; return ;;`] : [],
    ),
  )
  .join('\n')}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then
    case "$at" in
${table
  .map(({ path, options }) => {
    const entries = options.flatMap(({ names, description }) => names.map((name) => describe(name, description)));
    return `      ${shellQuote(path)}) found=(${entries.join(' ')}) ;;`;
  })
  .join('\n')}
    esac
    _describe -o option found
    return
  fi
  case "$at $count" in
${table
  .flatMap(({ path, subcommands }) =>
    subcommands.length > 0
      ? [
          `    ${shellQuote(`${path} 0`)}) found=(${subcommands.map(({ name, description }) => describe(name, description)).join(' ')}); _describe command found ;;`,
        ]
      : [],
  )
  .join('\n')}
${table.flatMap(({ path, values }) => values.map((value, index) => `    ${shellQuote(`${path} ${index}`)}) ${reply(value)} ;;`)).join('\n')}
  esac
}
_runyard_runs() {
  local -a runs
  runs=(latest $(\${(Q)words[1]} runs --limit 20 2>/dev/null </dev/null | cut -f1 | grep -xE '[A-Za-z0-9-]+'))
  compadd -- $runs
}
if [[ \${funcstack[1]} == _runyard ]]; then _runyard "$@"; else compdef _runyard runyard; fi
`;
}

const withValue = (table: readonly CommandEntry[]): string =>
  table
    .flatMap(({ path, options }) =>
      options.flatMap(({ names, value }) => (value ? names.map((name) => shellQuote(`${path} ${name}`)) : [])),
    )
    .join('|');

const describe = (name: string, description: string): string =>
  shellQuote(`${name.replaceAll(':', '\\:')}:${description}`);

function reply(value: Value): string {
  switch (value.kind) {
    case 'choices':
      return `compadd -- ${value.choices.map(shellQuote).join(' ')}`;
    case 'file':
      return '_files';
    case 'run':
      return '_runyard_runs';
    case 'text':
      return ':';
  }
}
