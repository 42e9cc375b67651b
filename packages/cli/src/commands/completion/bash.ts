import { shellQuote } from '../../terminal/curl-example.ts';
import type { CommandEntry, Value } from './command-table.ts';

/** Returns the script that completes the command in bash. The script needs only bash. */
export function bashCompletion(table: readonly CommandEntry[]): string {
  return `# Completions of runyard for bash. Use: eval "$(bin/runyard completion bash)"
_runyard() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path='' word i count=0
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case "$path/$word" in
${paths(table)}
      */-*) _runyard_takes_value "$path $word" && i=$((i + 1)) ;;
      *) count=$((count + 1)) ;;
    esac
  done
  COMPREPLY=()
  case "$path $prev" in
${optionValues(table)}
  esac
  if [[ $cur == -* ]]; then
    case "$path" in
${table.map(({ path, options }) => `      ${shellQuote(path)}) ${words(options.flatMap(({ names }) => names))} ;;`).join('\n')}
    esac
    return
  fi
  case "$path $count" in
${table.flatMap(({ path, subcommands }) => (subcommands.length > 0 ? [`    ${shellQuote(`${path} 0`)}) ${words(subcommands.map(({ name }) => name))} ;;`] : [])).join('\n')}
${table.flatMap(({ path, values }) => values.map((value, index) => `    ${shellQuote(`${path} ${index}`)}) ${reply(value)} ;;`)).join('\n')}
  esac
}
_runyard_takes_value() {
  case "$1" in
${takingValue(table)}
  esac
  return 1
}
_runyard_offer() {
  local each
  for each in "$@"; do [[ $each == "$cur"* ]] && COMPREPLY+=("$each"); done
}
_runyard_runs() {
  local id rest
  _runyard_offer latest
  while IFS=$'\\t' read -r id rest; do
    [[ $id =~ ^[A-Za-z0-9-]+$ ]] && _runyard_offer "$id"
  done < <("\${COMP_WORDS[0]}" runs --limit 20 2>/dev/null </dev/null)
}
_runyard_files() {
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$cur")
}
complete -F _runyard runyard
`;
}

function paths(table: readonly CommandEntry[]): string {
  const commandPaths = table.filter(({ path }) => path !== '').map(({ path }) => shellQuote(path));
  return `      ${commandPaths.join('|')}) path=$path/$word ;;`;
}

function optionValues(table: readonly CommandEntry[]): string {
  return table
    .flatMap(({ path, options }) =>
      options.flatMap(({ names, value }) =>
        value
          ? [`    ${names.map((name) => shellQuote(`${path} ${name}`)).join('|')}) ${reply(value)}; return ;;`]
          : [],
      ),
    )
    .join('\n');
}

function takingValue(table: readonly CommandEntry[]): string {
  const cases = table.flatMap(({ path, options }) =>
    options.flatMap(({ names, value }) => (value ? names.map((name) => shellQuote(`${path} ${name}`)) : [])),
  );
  return `    ${cases.join('|')}) return 0 ;;`;
}

/** Never pass words to `compgen -W`: bash expands them, so `$(…)` in the id of a run would run a command. */
const words = (list: readonly string[]): string => `_runyard_offer ${list.map(shellQuote).join(' ')}`;

function reply(value: Value): string {
  switch (value.kind) {
    case 'choices':
      return words(value.choices);
    case 'file':
      return '_runyard_files';
    case 'run':
      return '_runyard_runs';
    case 'text':
      return ':';
  }
}
