/** The options of `runs` that filter and sort. */
import { type Command, Option } from 'commander';

const collect = (value: string, before: string[] = []) => [...before, value];

/** Adds an option for each filter of the list of runs. The service checks the values. */
export function addRunFilters(runs: Command): void {
  runs
    .option('--model <id>', 'only runs whose configuration names this model')
    .option('--environment <environment>', 'only runs in this environment, by UID or name; none: without one')
    .option('--skill <spec>', 'only runs that follow this skill')
    .option('--schedule <schedule>', 'only runs of this schedule, by id or name')
    .option('--factory <factory>', 'only runs of this factory, by UID, alias or name')
    .option('--automation <uid>', 'only runs that this automation started')
    .option('--below <run>', 'only runs that this run started, at any depth')
    .option('--creator <uid>', 'only runs that this person or agent created')
    .option('--executor <uid>', 'only runs that execute as this person or agent')
    .option('--source <source>', 'only runs that were created in this way, such as API or WEBHOOK')
    .option('--location <location>', 'only runs that execute there: LOCAL or REMOTE')
    .option('--artifact <type>', 'only runs with an artifact of this type, such as FILE or PULL_REQUEST')
    .option('--metadata <key=value>', 'only runs with this pair; repeat for more', collect)
    .option('--created-after <time>', 'only runs that were created after this time, such as 2026-01-31T08:00:00Z')
    .option('--created-before <time>', 'only runs that were created before this time')
    .option('--updated-after <time>', 'only runs that changed after this time')
    .option('--search <words>', 'only runs with these words in title, skill or prompt')
    .addOption(new Option('--sort <member>', 'sort by').choices(['created_at', 'updated_at', 'title', 'agent']))
    .addOption(new Option('--order <order>', 'direction').choices(['asc', 'desc']));
}
