// Text panels, by Grafana's own Markdown and its own cleaning of HTML.
import React from 'react';
import { renderMarkdown, textUtil } from '@grafana/data';

export function TextPanel({ panel, replace }) {
  const { mode = 'markdown', content = '' } = panel.options ?? {};
  const text = replace(content);
  if (mode === 'code') return <pre>{text}</pre>;
  const html = mode === 'html' ? textUtil.sanitizeTextPanelContent(text) : renderMarkdown(text);
  return <div className="markdown-html" style={{ height: '100%', overflow: 'auto' }} dangerouslySetInnerHTML={{ __html: html }} />;
}
