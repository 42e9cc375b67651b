import { describe, expect, test } from 'vitest';
import { automation, type Files, faultsOf, trigger, uid } from '../test/definition-files.ts';

describe('readDefinition refuses, with file, line and column,', () => {
  test.each<[string, Files, string]>([
    [
      'an unknown event',
      trigger('provider: github\nevent: pull_request_open'),
      'automations/n/automation.md:4:12: triggers[0].event is no event of github; did you mean pull_request_opened?',
    ],
    [
      'a filter that the event does not support',
      trigger('provider: github\nevent: push\nfilter:\n  base_branches: [main]'),
      'automations/n/automation.md:6:7: triggers[0].filter.base_branches is not a known key; known keys: repos, branches, paths',
    ],
    [
      'a filter in camel case',
      trigger('provider: github\nevent: pull_request_opened\nfilter:\n  baseBranches: [main]'),
      'automations/n/automation.md:6:7: triggers[0].filter.baseBranches is not a known key; did you mean base_branches?',
    ],
    [
      'a value on both sides of a matcher',
      trigger('provider: github\nevent: push\nfilter:\n  repos: {in: [a/b], not_in: [A/B]}'),
      'automations/n/automation.md:6:20: triggers[0].filter.repos.in[0] is in not_in too, so it can never match',
    ],
    [
      'a scalar as matcher',
      trigger('provider: github\nevent: push\nfilter:\n  branches: main'),
      'automations/n/automation.md:6:17: triggers[0].filter.branches must be a list of values, or an object with in and not_in',
    ],
    [
      'text as number of a pull request',
      trigger('provider: github\nevent: pull_request_opened\nfilter:\n  pr_numbers: ["12"]'),
      'automations/n/automation.md:6:20: triggers[0].filter.pr_numbers[0] must be a number, and is a text',
    ],
    [
      'a name in place of a UID',
      trigger('provider: webhook\nevent: received\nfilter:\n  webhook_ids: [stripe]'),
      'automations/n/automation.md:6:21: triggers[0].filter.webhook_ids[0] must be exactly 22 characters of [A-Za-z0-9]',
    ],
    [
      'a webhook trigger without UIDs',
      trigger('provider: webhook\nevent: received'),
      'automations/n/automation.md:3:5: triggers[0].filter is missing: it lists the webhooks whose deliveries start a run, such as {"webhooks": ["ci"]}',
    ],
    [
      'a payload filter with a scalar',
      trigger(`provider: webhook\nevent: received\nfilter:\n  webhook_ids: [${uid}]\n  payload:\n    status: failed`),
      'automations/n/automation.md:8:17: triggers[0].filter.payload.status must be an array of values or an object; to match one value, write ["failed"]',
    ],
    [
      'a schedule on another trigger',
      trigger('provider: github\nevent: push\nschedule:\n  cron: 0 3 * * *'),
      'automations/n/automation.md:5:5: triggers[0].schedule is not a known key; known keys: provider, event, filter',
    ],
    [
      'a schedule with seconds',
      trigger('provider: schedule\nevent: cron_fired\nschedule:\n  cron: 0 0 3 * * *'),
      'automations/n/automation.md:6:13: triggers[0].schedule.cron must have five fields (minute, hour, day of the month, month, day of the week), not 6',
    ],
    [
      'a schedule that never fires',
      trigger('provider: schedule\nevent: cron_fired\nschedule:\n  cron: 0 0 31 2 *'),
      'automations/n/automation.md:6:13: triggers[0].schedule.cron never fires: no month has such a day',
    ],
    [
      'two schedules without a name',
      automation(
        'triggers:\n  - {provider: schedule, event: cron_fired, schedule: {cron: "@daily"}}\n  - {provider: schedule, event: cron_fired, schedule: {cron: "@hourly"}}\n',
      ),
      'automations/n/automation.md:4:55: triggers[1].schedule needs a name, because the automation already has a schedule without a name',
    ],
  ])('%s', (_name, files, fault) => {
    expect(faultsOf(files)).toEqual([fault]);
  });
});
