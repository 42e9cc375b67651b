import { useSearch } from '@tanstack/react-router';
import { oneOf } from '../../frame/search.ts';
import { Content, P } from '../../parts/blocks.tsx';
import { QueryTabs } from '../../parts/query-tabs.tsx';
import { DeliveryRows, useDeliveryList } from '../webhooks/delivery-list.tsx';

/** Views of the list of deliveries, each with the filters of the API that it uses. */
const views = [
  ['All', {}],
  ['Started runs', { started: 'true' }],
  ['Started none', { started: 'false', label: 'ACCEPTED' }],
  ['Duplicates', { label: 'DUPLICATE' }],
  ['Bad signature', { label: 'REJECTED_AUTH' }],
] as const satisfies readonly (readonly [string, { readonly started?: string; readonly label?: string }])[];

type Label = 'ACCEPTED' | 'DUPLICATE' | 'REJECTED_AUTH';

/** Shows the deliveries to all webhooks of the team, and adds new deliveries when they arrive. */
export function TeamDeliveries() {
  const label = oneOf(useSearch({ strict: false, select: (search) => search.label }));
  const started = oneOf(useSearch({ strict: false, select: (search) => search.started }));
  const [, view] =
    views.find(([, each]) => ('label' in each ? each.label : undefined) === label && startedOf(each) === started) ??
    views[0];
  const deliveries = useDeliveryList(
    {
      ...('label' in view ? { label: view.label as Label } : {}),
      ...('started' in view ? { started: view.started === 'true' } : {}),
    },
    false,
  );
  return (
    <Content>
      <QueryTabs
        label="Outcomes"
        tabs={views.map(([name, each]) => ({
          name,
          search: { tab: 'deliveries', ...each },
          isCurrent: each === view,
        }))}
      />
      <div>
        <DeliveryRows deliveries={deliveries} isOfTeam empty={<P tone="dim">None yet.</P>} />
      </div>
    </Content>
  );
}

const startedOf = (view: (typeof views)[number][1]): string | undefined =>
  'started' in view ? view.started : undefined;
