import { Page } from '../../frame/page.tsx';

export function WorkersScreen() {
  return <Page title="WorkersScreen">{null}</Page>;
}
