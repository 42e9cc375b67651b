import { settingsTable } from '@runyard/contract/settings/settings';

const programs = { service: 'service', worker: 'worker', cli: 'command line' } as const;

/** Returns the text of `docs/settings.md`, which is made from the table of settings. */
export function renderSettingsPage(): string {
  const rows = Object.entries(settingsTable).map(([name, setting]) => {
    const fallback = 'default' in setting && setting.default !== '' ? `\`${setting.default}\`` : '';
    const usedBy = setting.usedBy.map((program) => programs[program]).join(', ');
    const secret = 'secret' in setting ? ' **Secret.**' : '';
    return `| \`${name}\` | ${fallback} | ${escapeCell(setting.description)}${secret} | ${usedBy} |`;
  });
  return `<!-- Written by bin/generate from packages/contract/src/settings/settings.ts. -->

# Settings

All settings are environment variables. White space at the ends of a value does not count, and an empty
value counts as absent. A program does not start with a wrong value, or
with a \`RUNYARD_…\` name that is not in this table. It prints the name and the reason, but never the value of a secret, nor a URL with a password.

The value of a secret can be in a file: \`NAME_FILE\` is its path, such as \`RUNYARD_DATABASE_URL_FILE=/run/secrets/database-url\`. White space at the
ends of the file and a byte order mark do not count.

\`bin/runyard\` gives each program only the settings that the program uses: the worker gets no key of a model provider and
no database address. The default of \`RUNYARD_DATA_DIR\` is a folder in the checkout, or
\`~/.local/share/runyard\` for the npm package; a relative value is relative to the current folder.

Outgoing connections of all programs obey \`HTTPS_PROXY\`, \`HTTP_PROXY\` and \`NO_PROXY\`
([tls-inspection.md](tls-inspection.md#a-proxy-for-outgoing-connections)).

| name | default | meaning | used by |
|---|---|---|---|
${rows.join('\n')}
`;
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|');
}
