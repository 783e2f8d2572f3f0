// Where Grafana's widgets look for their icons and fonts; the preview's own server answers there.
window.__grafana_public_path__ = '/public/';
