/** Runs the scenarios on a real GitHub with the settings of the environment. Without arguments, or with `--help`. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Ground, openGround, type TrySettings } from './ground.ts';
import { openPerson } from './person.ts';
import { runScenarios } from './scenarios.ts';

const help = `bin/try-github tries a GitHub App with a service of this checkout on github.com or an Enterprise Server.

It starts a service and a worker on this machine, with a database in a temporary folder, and stops and deletes them at the end. The service
needs no public address: it reads the App's log of deliveries, so each event comes up to a minute late. A try takes about five minutes.

Settings (variables of the environment):
  GITHUB_TOKEN            token of a person who may push to the repository, and who is the account in which the App is installed or an
                          owner of its organization. Classic: the scope repo, for an organization also read:org. Fine-grained: contents,
                          issues and pull requests (write), for an organization also its members (read)
  TRY_GITHUB_APP_ID       number of the App
  TRY_GITHUB_APP_KEY_FILE file with the private key of the App (PEM)
  TRY_GITHUB_REPOSITORY   repository for the try, as owner/name, in which the App is installed
  TRY_GITHUB_URL          origin of GitHub. Default: https://github.com

The App needs the permissions and events of docs/github.md. Its webhook must be active, because GitHub keeps no log otherwise; nobody needs to
answer at its address. Use an App that no other service uses, because both would answer, and install it only in this repository.

The command writes in the repository:
  - as the person: one issue and one reply in it, one branch with one new file, one pull request from this branch. All names begin with
    runyard-try-. Workflows of the repository that such events start run, and people who watch the repository get mails
  - as the App: one comment in the issue, one in the pull request, one check run on its commit if the App may write checks
At the end, also after a failure and after Ctrl-C, it closes the issue and the pull request and deletes the branch. The closed issue, the
closed pull request and their comments stay, because GitHub cannot delete them for a person. If it is killed, or an answer of GitHub is lost,
look for open ones named runyard-try-.

It links the person to the team of its own service without a browser: GitHub itself says whose the token is. So the page on which people
authorize the App, and the creation of the App from its manifest, are not tried.
`;

const stop = new AbortController();
const say = (line: string) => void process.stdout.write(`${line}\n`);

function readSettings(): TrySettings {
  const { GITHUB_TOKEN: token, TRY_GITHUB_URL: url = 'https://github.com', ...env } = process.env;
  const { TRY_GITHUB_APP_ID: appId, TRY_GITHUB_APP_KEY_FILE: file, TRY_GITHUB_REPOSITORY: repository } = env;
  if (!token || !appId || !file || !repository)
    throw new Error('a setting is missing: bin/try-github --help lists them');
  if (!/^[\w.-]+\/[\w.-]+$/.test(repository)) throw new Error('TRY_GITHUB_REPOSITORY must be owner/name');
  const origin = URL.parse(url)?.origin;
  if (!origin) throw new Error('TRY_GITHUB_URL must be an address such as https://github.com');
  return { url: origin, appId, privateKey: readFileSync(file, 'utf8'), repository, token };
}

/** Prints the last warnings and errors of the service and the worker, because their log is deleted. */
async function sayWarnings(system: Ground['system']): Promise<void> {
  const lines = (await system.logs()).split('\n').filter((line) => /"level":[456]0,/.test(line));
  for (const line of lines.slice(-10)) say(line.slice(0, 1_000));
}

async function main(): Promise<number> {
  const settings = readSettings();
  const { repository, token } = settings;
  say('starting a service ...');
  const ground = await openGround(settings);
  try {
    const label = `runyard-try-${randomBytes(4).toString('hex')}`;
    const person = openPerson({ api: ground.api, token, repository, signal: stop.signal });
    say(`${label}: ${ground.login} asks @${ground.slug} in ${repository}`);
    const failed = await runScenarios({ ground, person, label, pauseMs: 5_000, signal: stop.signal, say });
    if (failed > 0) await sayWarnings(ground.system);
    return failed;
  } finally {
    await ground.system.stop();
  }
}

if (process.argv.length > 2) {
  process.stdout.write(help);
  process.exitCode = process.argv[2] === '--help' ? 0 : 2;
} else {
  // Ctrl-C also reaches the service and the worker; what is open on GitHub is closed without them.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort());
  process.exitCode = await main().then(
    (failed) => (failed === 0 && !stop.signal.aborted ? 0 : 1),
    (error: Error) => {
      process.stderr.write(`${error.message}\n`);
      return 2;
    },
  );
}
