import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import { approvalPolicies, runModes, workerLossPolicies } from '@runyard/contract/wire/choices';
import { type Command, Option } from 'commander';
import { collect } from '../../input/options.ts';

/** Adds the options that describe how a run works. `run` and the commands for schedules have the same options. */
export function addRunOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--mode <mode>',
        'plan: the agent changes nothing and answers with a plan; orchestrate: the agent may start child runs',
      ).choices(runModes),
    )
    .option(
      '--config <file>',
      'a JSON file with members of the configuration, as in the API; the other options have priority',
    )
    .option('--model <id>', 'language model')
    .option('--environment <id>', 'environment, by UID or name: repositories and setup commands')
    .option('--secret <name>', 'secret for the sandbox, as a variable of its name; repeat for more', collect)
    .option('--refresh', 'run the whole setup of the environment, and do not use a prepared workspace')
    .option('--skill <spec>', 'skill to follow: owner/repo:name; see bin/runyard agents')
    .option(
      '--harness <type>',
      `program that works on the prompt: oz (built in), ${presetTypes.join(', ')}; or acp or command, with --harness-command`,
    )
    .option(
      '--harness-command <line>',
      'shell command that starts the program in the sandbox; with command, the program reads the prompt from standard input',
    )
    .addOption(
      new Option(
        '--approval <policy>',
        'ask: the agent asks before each command and change of a file; in a terminal, it asks you here',
      ).choices(approvalPolicies),
    )
    .option(
      '--ask <rule>',
      'ask only before these actions, and allow all others: push, push=OWNER/REPO, host=HOST, tool=NAME, command=WORDS, write_outside=FOLDER; repeat for more',
      collect,
    )
    .option('--idle <minutes>', 'how long the sandbox waits for a follow-up after the run, 0 to 60 (default of run: 0)')
    .option('--schema <file>', 'a JSON Schema; the agent must return a result that matches it')
    .option('--checks <file>', 'a list of checks in JSON, which decide whether the run has succeeded')
    .option(
      '--retry <code>',
      'error code after which the run is repeated, such as checks_failed; repeat for more',
      collect,
    )
    .option('--retries <count>', 'how many runs may follow the first one, 1 to 5 (default: 1); needs --retry')
    .option('--max-cost <usd>', 'most that the run and the runs it starts may spend on models')
    .option('--max-turns <count>', 'most model answers of the run and the runs it starts')
    .option('--max-minutes <minutes>', 'longest time that the run may work')
    .addOption(
      new Option(
        '--on-worker-loss <policy>',
        'if the machine is lost in the middle of a turn: fail (default), or resume from the last checkpoint',
      ).choices(workerLossPolicies),
    )
    .option(
      '--mcp <server>',
      'an MCP server: the name or id of a stored one, or a JSON file with servers; repeat for more',
      collect,
    )
    .option('--metadata <key=value>', 'a pair to keep with the run; repeat for more', collect);
}
