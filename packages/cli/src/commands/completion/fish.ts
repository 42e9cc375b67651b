import type { CommandEntry, OptionEntry, Value } from './command-table.ts';

/** Returns the script that completes the command in fish. */
export function fishCompletion(table: readonly CommandEntry[]): string {
  const lines = table.flatMap(({ path, subcommands, options, values }) => [
    ...subcommands.map(({ name, description }) => `${at(`${path} 0`)} -a ${quote(name)} -d ${quote(description)}`),
    ...options.map((option) => `${under(path)} ${optionWords(option)}`),
    ...values.flatMap((value, index) => argumentLine(`${path} ${index}`, value)),
  ]);
  return `# Completions of runyard for fish. Use: bin/runyard completion fish | source
function __runyard_place
    set -l at ''
    set -l count 0
    set -l skip 0
    for word in (commandline -opc)[2..]
        if test $skip = 1
            set skip 0
            continue
        end
        switch "$at/$word"
            case ${table
              .filter(({ path }) => path !== '')
              .map(({ path }) => quote(path))
              .join(' ')}
                set at "$at/$word"
            case '*/-*'
                contains -- "$at $word" ${table
                  .flatMap(({ path, options }) =>
                    options.flatMap(({ names, value }) => (value ? names.map((name) => quote(`${path} ${name}`)) : [])),
                  )
                  .join(' ')}
                and set skip 1
            case '*'
                set count (math $count + 1)
        end
    end
    echo "$at $count"
end
function __runyard_runs
    echo latest
    set -l command (commandline -opc)[1]
    $command runs --limit 20 2>/dev/null </dev/null | cut -f1,5 | string match -r '^[A-Za-z0-9-]+(?:\\t.*)?$'
end
complete -c runyard -f
${lines.join('\n')}
`;
}

const at = (place: string): string => `complete -c runyard -n ${quote(`test (__runyard_place) = ${quote(place)}`)}`;
const under = (path: string): string =>
  `complete -c runyard -n ${quote(`string match -qr ${quote(`^${path} `)} -- (__runyard_place)`)}`;

/** Quotes a text for fish. Inside single quotes, fish interprets only the escapes \\ and \'. */
const quote = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`;

function optionWords({ names, description, value }: OptionEntry): string {
  const flags = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)).join(' ');
  const takes =
    value === undefined
      ? ''
      : value.kind === 'choices'
        ? ` -xa ${quote(value.choices.join(' '))}`
        : value.kind === 'run'
          ? " -xa '(__runyard_runs)'"
          : value.kind === 'file'
            ? ' -rF'
            : ' -x';
  return `${flags}${takes} -d ${quote(description)}`;
}

function argumentLine(place: string, value: Value): string[] {
  switch (value.kind) {
    case 'choices':
      return [`${at(place)} -a ${quote(value.choices.join(' '))}`];
    case 'run':
      return [`${at(place)} -a '(__runyard_runs)'`];
    case 'file':
      return [`${at(place)} -F`];
    case 'text':
      return [];
  }
}
