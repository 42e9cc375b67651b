/** Examples of the operations on budgets and usage. */
import { type Example, exampleCreator, exampleTimes } from '../wire/example.ts';

const budget = {
  month: '2026-10',
  spent_usd: 12.5,
  monthly_limit_usd: 100,
  updated_at: exampleTimes.created,
};

export const budgetExamples = {
  getTeamBudget: { answer: budget },
  updateTeamBudget: { body: { monthly_limit_usd: 100 }, answer: budget },
  getUsage: {
    query: { from: '2026-10-01', to: '2026-10-31', group_by: ['day', 'creator', 'automation'] },
    answer: {
      from: '2026-10-01',
      to: '2026-10-31',
      usage: [
        {
          day: '2026-10-25',
          creator: exampleCreator,
          automation: { kind: 'none' },
          requests: 12,
          input_tokens: 20_000,
          output_tokens: 9000,
          cache_read_tokens: 150_000,
          cache_write_tokens: 0,
          cost_usd: 0.29,
          credits: 29,
          unpriced_requests: 0,
        },
      ],
      scope: 'team',
      storage: { bytes: 1_258_291, max_bytes: 21_474_836_480 },
      page_info: { has_next_page: false },
    },
  },
} as const satisfies Record<string, Example>;
